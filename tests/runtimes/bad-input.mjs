// What people get wrong about a store, and the one error that each of them gets. The runner compares the table of every runtime.
// Options and variables are told by the wasm, the same everywhere: tests/js/hostile.test.mjs and src/.
import { EdgelectError, Elector, S3Storage } from 'edgelect';
import { equal, ok, openLane, pause, until } from './harness.mjs';

const GIVES = 'a provider gives { accessKeyId, secretAccessKey, sessionToken? }, each a text that is not empty';
const KEYS = 'credentials are { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them';
const NOT_S3 = 'this does not come from an S3 store, so it does not mean that the record is absent; check the endpoint';
const NO_ANSWER = 'no answer: REASON; check the endpoint and the network';

const ONE_LINE = '(not shown): must be a text of one line without control characters; what was read from a file often ends with a newline: remove it';

// A pause of the machine is no answer that came too late.
const PATIENT = { leaderTimeout: 60_000, requestTimeout: 10_000 };

const refusal = (code, field, message) => ({ name: 'EdgelectError', code, field, message });
const config = (field, why) => refusal('EDGELECT_CONFIG', field, `${field} = ${why}`);
const store = (why, bucket = 'BUCKET') => refusal('EDGELECT_STORE', null, `S3 bucket "${bucket}" at ENDPOINT: ${why}`);

/** Each case: what is given, and the error that must come. */
const CASES = {
  'no credentials': [{ bucket: { credentials: undefined } }, config('credentials.accessKeyId', `(not a text): ${KEYS}`)],
  'a provider that fails': [{ bucket: { credentials: () => Promise.reject(new Error('no role')) } }, store('the credentials provider failed: no role')],
  'a provider that gives nothing': [{ bucket: { credentials: () => null } }, store(`the credentials provider failed: credentials.accessKeyId = (undefined): ${GIVES}`)],
  'a wrong secret': [{ bucket: { credentials: ({ accessKeyId }) => ({ accessKeyId, secretAccessKey: 'hidden-secret' }) } }, store('GET "KEY" was answered 403 SignatureDoesNotMatch: check the secret access key and the region, and that nothing on the way changes the request')],
  'an unknown key id': [{ bucket: { credentials: () => ({ accessKeyId: 'AKIDNOBODY', secretAccessKey: 'hidden-secret' }) } }, store('GET "KEY" was answered 403 InvalidAccessKeyId: check the access key id')],
  'credentials that no header takes': [{ bucket: { credentials: () => ({ accessKeyId: 'ä', secretAccessKey: 'hidden-secret' }) } }, store('nothing was sent: the access key id, session token or region has a character that no header can carry; check the credentials')],
  'a provider that gives a secret with a newline': [{ bucket: { credentials: () => ({ accessKeyId: 'id', secretAccessKey: 'hidden-secret\n' }) } }, store(`the credentials provider failed: credentials.secretAccessKey = ${ONE_LINE}`)],
  'a wrong region': [{ rules: [{ status: 400, body: '<Error><Code>AuthorizationHeaderMalformed</Code></Error>' }] }, store('GET "KEY" was answered 400 AuthorizationHeaderMalformed: the store cannot do this as it is set up; check endpoint, bucket, region and key')],
  'a bucket that does not exist': [{ bucket: { bucket: 'there-is-no-such-bucket' } }, store('GET "KEY" was answered 404 NoSuchBucket: create the bucket, or correct its name or the endpoint', 'there-is-no-such-bucket')],
  'a web page that says 200': [{ rules: [{ fault: 'web', status: 200 }] }, store('GET "KEY" was answered 200: this is a web page, not the answer of an S3 store; check the endpoint')],
  'a web page that says 404': [{ rules: [{ fault: 'web', status: 404 }] }, store(`GET "KEY" was answered 404: ${NOT_S3}`)],
  'a web page that says 403': [{ rules: [{ fault: 'web', status: 403 }] }, store('GET "KEY" was answered 403: this is a web page, not the answer of an S3 store; check the endpoint')],
  'a web page that says 502': [{ rules: [{ fault: 'web', status: 502 }] }, store('GET "KEY" was answered 502: it is tried again')],
  'a closed port': [{ lane: { kind: 'closed' } }, store(NO_ANSWER)],
  'a certificate that nobody trusts': [{ lane: { kind: 'https' } }, store(NO_ANSWER)],
  'https to a server without it': [{ endpointOf: (endpoint) => endpoint.replace('http:', 'https:') }, store(NO_ANSWER)],
  'http to a server with https': [{ lane: { kind: 'https' }, endpointOf: (endpoint) => endpoint.replace('https:', 'http:') }, store(NO_ANSWER)],
  'a connection that is reset': [{ rules: [{ fault: 'reset' }] }, store(NO_ANSWER)],
};

const secret = /hidden-secret|Signature=|AWS4-HMAC/;

/** Runs one case and gives what came: the class by its name, `code`, `field` and the message without what differs by chance. */
const outcome = async (context, given, isFinal) => {
  const lane = await openLane(context, { rules: [], ...given.lane, ...(given.rules && { rules: given.rules }) });
  const endpoint = given.endpointOf?.(lane.endpoint) ?? lane.endpoint;
  const lockfilePath = `bad/${crypto.randomUUID()}.json`;
  const where = { endpoint, bucket: context.bucket, region: 'us-east-1', credentials: context.credentials, ...given.bucket };
  const provider = where.credentials;
  if (typeof provider === 'function') where.credentials = () => provider(context.credentials);
  const plain = (message) => withoutChance(message)
    .replaceAll(endpoint, 'ENDPOINT').replace(lockfilePath, 'KEY').replaceAll(context.bucket, 'BUCKET');
  let elector;
  try {
    const storage = new S3Storage(where);
    elector = new Elector({ storage, lockfilePath, warn: false, ...PATIENT });
    await elector.init();
    return { message: 'nothing was refused' };
  } catch (error) {
    const came = shown(error, plain);
    return elector ? { ...came, ...(await whenStarted(elector, plain, isFinal)) } : came;
  }
};

const shown = (error, plain) => {
  ok(error instanceof EdgelectError, String(error?.stack));
  ok(!secret.test(`${error.message} ${error.stack}`), 'a secret is shown');
  return { name: error.name, code: error.code, field: error.field ?? null, message: plain(error.message) };
};

/** What those see who never call `init`: `status().error`, and who waits for a store that can never do. */
const whenStarted = async (elector, plain, isFinal) => {
  let ended;
  const waiting = async () => {
    await elector.start();
    await elector.waitForLeadership();
  };
  void waiting().catch((error) => (ended = error));
  try {
    const status = plain(await until(() => elector.status().error));
    // What does not come is waited for a moment, what must come however busy the machine is.
    await (isFinal ? until(() => ended) : pause(200));
    return { status, waited: ended === undefined ? 'goes on' : shown(ended, plain) };
  } finally {
    await elector.stop();
  }
};

/** The reason is the runtime's own short text, and the only place where they differ. */
const withoutChance = (message) => {
  const reason = /no answer: (.*); check the endpoint/.exec(message)?.[1];
  if (reason === undefined) return message;
  ok(reason.length > 5 && reason.length < 300, reason);
  return message.replace(/no answer: .*; check/, 'no answer: REASON; check');
};

/** Trying again does not help there, so whoever waits is told. */
const FINAL = ['a bucket that does not exist', 'a wrong region', 'a wrong secret', 'an unknown key id'];

export const badInput = Object.fromEntries(Object.entries(CASES).map(([name, [given, error]]) => [`bad input: ${name}`, async (context) => {
  const isFinal = FINAL.includes(name);
  const came = await outcome(context, given, isFinal);
  context.table[name] = came;
  const waited = isFinal ? error : 'goes on';
  equal(came, error.code === 'EDGELECT_CONFIG' ? error : { ...error, status: error.message, waited });
}]));
