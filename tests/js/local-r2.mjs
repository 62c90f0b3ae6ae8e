// R2 as Wrangler has it locally, by its S3 endpoint; a program of its own, because Miniflare wants Node 24. Prints where it is.
import { Miniflare, convertV4MiniflareOptions } from 'miniflare';

const [bucket, accessKeyId, secretAccessKey] = process.argv.slice(2);
const miniflare = new Miniflare(convertV4MiniflareOptions({
  modules: true,
  script: 'export default { fetch: () => new Response() }',
  compatibilityDate: '2026-11-01',
  r2Buckets: { EDGELECT_R2: { id: bucket, s3Credentials: { accessKeyId, secretAccessKey } } },
}));
console.log(new URL('/cdn-cgi/local/r2/s3', await miniflare.ready).href);
process.stdin.resume().once('end', () => miniflare.dispose().then(() => process.exit()));
