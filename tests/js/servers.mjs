// The servers that tests start beside what is tested, how they end, and what is waited for.
export { atEnd, kept } from './ending.mjs';
export { startDropping, startLiar } from './liar.mjs';
export { serve } from './loopback.mjs';
export { startProxy } from './proxy.mjs';
export { until } from './until.mjs';
