import { main } from './main.mjs';
import { using } from './using.mjs';

const rejections = [];
process.on('unhandledRejection', (reason) => rejections.push(String(reason?.stack ?? reason)));
const result = await main({ ...JSON.parse(process.argv[2]), using }, rejections);
console.log(JSON.stringify({ ...result, version: Bun.version, from: Bun.resolveSync('edgelect', import.meta.dir) }));
