// A member of the demo's kind, on Node, Deno or Bun, that has work to do.
import { elector } from '../../js/demo/member.mjs';
import { act } from './acting.mjs';

const { env } = process;

await act(elector, {
  member: env.EDGELECT_SERVER_ID,
  resource: env.LIVE_RESOURCE,
  heedlessMs: Number(env.LIVE_HEEDLESS_MS ?? 0),
});
