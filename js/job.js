// Calls the Worker's job: through its service binding, or at its URL.
import { textOf } from './errors.js';

// A service binding has no address of its own; the receiver sees this one.
const BOUND_URL = 'https://job.edgelect.internal/';

/** Sends one order of `src/job.rs` and resolves to `{ status }`. `job` is the service binding, if there is one. Nothing of
 * the answer but its status is read, so that a long or endless one costs nothing.
 * @throws Error with the message `timeout` if no answer came in time. */
export const callJob = async (order, job, signal) => {
  const { url, secret, timeout, id, token, body } = JSON.parse(order);
  const headers = { 'content-type': 'application/json', 'edgelect-token': token };
  if (secret) Object.assign(headers, await signed(secret, id, body));
  const late = AbortSignal.timeout(timeout);
  const init = { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.any([signal, late]) };
  let response;
  try {
    response = await (url ? fetch(url, init) : job.fetch(BOUND_URL, init));
  } catch (error) {
    throw late.aborted ? new Error('timeout') : new Error(textOf(error).slice(0, 200));
  }
  const { status } = response;
  // Not waited for: a body that never ends must not hold the slot.
  void (async () => response.body?.cancel())().catch(() => {});
  return { status };
};

/** The headers of Standard Webhooks: an HMAC with SHA-256 over id, time in seconds and body. */
const signed = async (secret, id, body) => {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const bytes = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${id}.${timestamp}.${body}`));
  const signature = btoa(String.fromCharCode(...new Uint8Array(mac)));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
};
