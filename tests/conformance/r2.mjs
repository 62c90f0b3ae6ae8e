// An R2Storage over Miniflare's own R2, for the list and the histories in wasm; Node 24 only.
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';
import { R2Storage } from '../../js/r2.js';

export const open = async () => {
  const script = 'export default {}';
  const miniflare = new Miniflare(convertV4MiniflareOptions({ modules: true, script, compatibilityDate: '2026-11-01', r2Buckets: ['EDGELECT_R2'] }));
  return { storage: new R2Storage(await miniflare.getR2Bucket('EDGELECT_R2')), close: () => miniflare.dispose() };
};
