// What people get wrong about a store where a runtime's own fetch has a part in it, and the one error that each of them gets. The
// runner compares the table of every runtime. What the wasm tells is the same everywhere: tests/answers/s3.rs, tests/js/doctor.test.mjs.
import { EdgelectError, Elector, S3Storage } from 'edgelect';
import { caught, equal, ok, openLane, pause, until } from './harness.mjs';

const NO_ANSWER = 'no answer: REASON; check the endpoint and the network';

// A pause of the machine is no answer that came too late.
const PATIENT = { leaderTimeout: 60_000, requestTimeout: 10_000 };

const store = (why) => ({ name: 'EdgelectError', code: 'EDGELECT_STORE', field: null, message: `S3 bucket "BUCKET" at ENDPOINT: ${why}` });

/** Each case: what is given, and the error that must come. */
const CASES = {
  'a wrong secret': [{ credentialsOf: ({ accessKeyId }) => ({ accessKeyId, secretAccessKey: 'hidden-secret' }) }, store('GET "KEY" was answered 403 SignatureDoesNotMatch: check the secret access key and the region, and that nothing on the way changes the request')],
  'credentials that no header takes': [{ credentialsOf: () => ({ accessKeyId: 'ä', secretAccessKey: 'hidden-secret' }) }, store('nothing was sent: the access key id, session token or region has a character that no header can carry; check the credentials')],
  'a web page that says 200': [{ rules: [{ fault: 'web' }] }, store('GET "KEY" was answered 200: this is a web page, not the answer of an S3 store; check the endpoint')],
  'a closed port': [{ kind: 'closed' }, store(NO_ANSWER)],
  'a certificate that nobody trusts': [{ kind: 'https' }, store(NO_ANSWER)],
  'https to a server without it': [{ endpointOf: (endpoint) => endpoint.replace('http:', 'https:') }, store(NO_ANSWER)],
  'http to a server with https': [{ kind: 'https', endpointOf: (endpoint) => endpoint.replace('https:', 'http:') }, store(NO_ANSWER)],
  'a connection that is reset': [{ rules: [{ fault: 'reset' }] }, store(NO_ANSWER)],
};

const secret = /hidden-secret|Signature=|AWS4-HMAC/;

/** Runs one case and gives what came: the class by its name, `code`, `field` and the message without what differs by chance. */
const outcome = async (context, { kind, rules, endpointOf = (endpoint) => endpoint, credentialsOf = (own) => own }, isFinal) => {
  const endpoint = endpointOf((await openLane(context, { kind, rules })).endpoint);
  const lockfilePath = `bad/${crypto.randomUUID()}.json`;
  const where = { endpoint, bucket: context.bucket, region: 'us-east-1', credentials: () => credentialsOf(context.credentials) };
  const plain = (message) => withoutChance(message)
    .replaceAll(endpoint, 'ENDPOINT').replace(lockfilePath, 'KEY').replaceAll(context.bucket, 'BUCKET');
  const elector = new Elector({ storage: new S3Storage(where), lockfilePath, warn: false, ...PATIENT });
  const came = shown(await caught(() => elector.init()), plain);
  return { ...came, ...(await whenStarted(elector, plain, isFinal)) };
};

const shown = (error, plain) => {
  ok(error instanceof EdgelectError, String(error?.stack));
  ok(!secret.test(`${error.message} ${error.stack}`), 'a secret is shown');
  return { name: error.name, code: error.code, field: error.field ?? null, message: plain(error.message) };
};

/** What those see who never call `init`: `status().error`, and who waits for a store that can never do. */
const whenStarted = async (elector, plain, isFinal) => {
  let ended;
  void elector.start().then(() => elector.waitForLeadership()).catch((error) => (ended = error));
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

export const badInput = Object.fromEntries(Object.entries(CASES).map(([name, [given, error]]) => [`bad input: ${name}`, async (context) => {
  // Trying again does not help there, so whoever waits is told.
  const isFinal = name === 'a wrong secret';
  const came = await outcome(context, given, isFinal);
  context.table[name] = came;
  const waited = isFinal ? error : 'goes on';
  equal(came, { ...error, status: error.message, waited });
}]));
