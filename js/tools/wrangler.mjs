import { inRoot } from './paths.mjs';

/** Wrangler's own program; it wants Node 24. */
export const WRANGLER = inRoot('node_modules/wrangler/bin/wrangler.js');

/** What keeps it from asking, reporting and calling home. */
export const QUIET_AND_OFFLINE = {
  CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false', WRANGLER_SEND_ERROR_REPORTS: 'false', WRANGLER_HIDE_BANNER: 'true',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
};
