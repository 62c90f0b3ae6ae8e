// A member with a server of its own, which notes the questions of peers that come.
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { Elector, nodeHandler } from 'edgelect';
import { serve } from '../../js/tools/serve.mjs';
import { atEnd } from './ending.mjs';

/** `secure` has the key and the certificate of its server. */
export const peered = async (options, { secure } = {}) => {
  const asked = [];
  let elector;
  const listener = (incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url, 'http://x');
    const question = { method: incoming.method, pathname, query: Object.fromEntries(searchParams), answered: null };
    asked.push(question);
    const { writeHead } = outgoing;
    outgoing.writeHead = (status, headers) => {
      question.answered = status;
      return writeHead.call(outgoing, status, headers);
    };
    return nodeHandler(elector)(incoming, outgoing);
  };
  const { host, close } = await serve(secure ? createSecureServer(secure, listener) : createServer(listener));
  elector = new Elector({ serverAddr: host, peerMode: true, probe: false, warn: false, ...options });
  atEnd(async () => {
    await elector.stop();
    await close();
  });
  return { elector, host, asked, held: () => asked.filter(({ answered }) => answered === null).length };
};
