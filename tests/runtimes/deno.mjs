import { main } from './suite.mjs';
import { using } from './using.mjs';

const rejections = [];
addEventListener('unhandledrejection', (event) => {
  event.preventDefault();
  rejections.push(String(event.reason?.stack ?? event.reason));
});
// It runs with the network of one host and nothing else.
const result = await main({ ...JSON.parse(Deno.args[0]), using, variablesDenied: true }, rejections);
console.log(JSON.stringify({ ...result, version: Deno.version.deno, from: new URL(import.meta.resolve('edgelect')).pathname }));
