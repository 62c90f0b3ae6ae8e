// Questions to peers whose certificates others do not trust: what each runtime has for that.
import { EdgelectError, checkNames, optionsOf, wrongOption } from './errors.js';
import { hasSingleClock } from './host.js';

const NAMES = ['ca', 'cert', 'key'];
/** Statuses whose answers have no body. */
const BODILESS = [204, 205, 304];

/** A `fetch` that trusts the certificates in `ca` and shows the client's own `cert` with its `key`, all of them PEM texts. */
export const fetchWith = (options) => {
  const tls = optionsOf(options, 'peerTls takes an object with ca, cert and key');
  checkNames(tls, NAMES, 'peerTls');
  for (const name of NAMES) {
    const value = tls[name];
    if (value !== undefined && (typeof value !== 'string' || !value.includes('-----BEGIN '))) {
      // A key is a secret, and a wrong one may be a right one in the wrong form.
      throw wrongPem(name);
    }
  }
  const { ca, cert, key } = tls;
  if ((cert === undefined) !== (key === undefined)) throw wrongOption('peerTls', '(not shown)', 'cert and key go together');
  const { Bun, Deno, process } = globalThis;
  if (Deno) {
    const client = Deno.createHttpClient({ caCerts: ca === undefined ? [] : [ca], cert, key });
    return (url, init) => fetch(url, { ...init, client });
  }
  if (Bun) return (url, init) => fetch(url, { ...init, tls: { ca, cert, key } });
  // Workers have an agent too, which takes the certificates and ignores them.
  const https = hasSingleClock() ? undefined : process?.getBuiltinModule?.('node:https');
  if (https) return viaHttps(https, new https.Agent({ ca, cert, key, keepAlive: true }));
  throw wrongOption('peerTls', '(not shown)', 'this runtime, as Workers do, trusts public authorities only: leave it out, and give the peers certificates of one');
};

const wrongPem = (name) =>
  new EdgelectError(`peerTls.${name} = (not shown): must be a PEM text, with its lines -----BEGIN … and -----END …`, {
    code: 'EDGELECT_CONFIG',
    field: 'peerTls',
  });

/** Node's own `fetch` takes no certificates. */
const viaHttps = (https, agent) => (url, { signal }) => {
  const secure = url.startsWith('https:');
  if (!secure) return fetch(url, { signal, redirect: 'manual' });
  const { Readable } = globalThis.process.getBuiltinModule('node:stream');
  return new Promise((resolve, reject) => {
    const request = https.get(url, { agent, signal }, (incoming) => {
      // Nobody catches what is thrown in here: a status that `Response` refuses would end the process.
      try {
        const headers = new Headers();
        for (let at = 0; at < incoming.rawHeaders.length; at += 2) headers.append(incoming.rawHeaders[at], incoming.rawHeaders[at + 1]);
        const { statusCode: status } = incoming;
        const bodiless = BODILESS.includes(status);
        const response = new Response(bodiless ? null : Readable.toWeb(incoming), { status, headers });
        // What is not read keeps its connection.
        if (bodiless) incoming.destroy();
        resolve(response);
      } catch (error) {
        incoming.destroy();
        reject(error);
      }
    });
    // Without it a peer that wants another protocol leaves the question without an end.
    request.on('upgrade', (_incoming, socket) => {
      socket.destroy();
      reject(new Error('the peer wants another protocol'));
    });
    request.on('error', reject);
  });
};
