// In Node and in Bun.
import { main } from './suite.mjs';

const [json, usingFile] = process.argv.slice(2);
const { using } = await import(usingFile);
const rejections = [];
process.on('unhandledRejection', (reason) => rejections.push(String(reason?.stack ?? reason)));
const result = await main({ ...JSON.parse(json), using }, rejections);
const { pathname } = new URL(import.meta.resolve('edgelect'));
console.log(JSON.stringify({ ...result, version: process.versions.bun ?? process.versions.node, from: pathname }));
