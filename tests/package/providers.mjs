// The AWS SDK's own providers as `credentials`: `providers.mjs SDK JSON`.
import { Elector, S3Storage } from 'edgelect';

const [sdk, json] = process.argv.slice(-2);
const { fromEnv, fromIni, fromNodeProviderChain } = await import(sdk);
const { profile, filepath, ...bucket } = JSON.parse(json);
const tokens = [];
for (const credentials of [fromEnv(), fromIni({ profile, filepath, configFilepath: filepath }), fromNodeProviderChain()]) {
  const storage = new S3Storage({ ...bucket, credentials });
  const elector = new Elector({ storage, lockfilePath: `providers/${crypto.randomUUID()}`, leaderTimeout: 3000, frequentInterval: 600 });
  await elector.init();
  tokens.push(await elector.lead((term) => term.token));
}
const failing = new S3Storage({ ...bucket, credentials: fromIni({ profile: 'nobody', filepath, configFilepath: filepath }) });
const error = await new Elector({ storage: failing, lockfilePath: 'a' }).init().catch((thrown) => thrown);
if (error?.code !== 'EDGELECT_STORE' || !error.message.includes('the credentials provider failed: ')) throw new Error(`not refused: ${error}`);
console.log(`led ${tokens.length}`);
