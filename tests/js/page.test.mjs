// The page for people in a real headless Chromium, whose time is virtual.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import axe from 'axe-core';
import { MemoryStorage, nodeHandler } from 'edgelect';
import { chromium } from 'playwright-core';
import { newFolder } from '../../js/tools/cleanup.mjs';
import { CHROMIUM } from '../../js/tools/paths.mjs';
import { serve } from '../../js/tools/serve.mjs';
import { atEnd, kept } from './ending.mjs';
import { leads, member, newGroup, started } from './group.mjs';

const NOW = Date.UTC(2026, 10, 23, 12, 0, 0);
const MINUTE = 60_000;
const TOKEN = 'a-token-of-the-tests';
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

const NOBODY = {
  role: 'none', serverId: 'edgelect', group: 'leader/report.json', leaderId: null, leaderAddr: null, term: null, remainingMs: null, transitions: null,
  parked: null, acquiredMs: null, renewedMs: null, leaseMs: null, history: [], lastSlot: null, waiting: null, requests: { read: 0, write: 0, peer: 0 }, error: null,
};
const past = (minutes, by, how) => ({ term: NOW - minutes * MINUTE, by, from: NOW - minutes * MINUTE, to: NOW - (minutes - 9) * MINUTE, how });
const LED = {
  ...NOBODY, role: 'follower', serverId: 'server-2', leaderId: 'server-1', term: NOW - 10 * MINUTE, transitions: 3, parked: false, acquiredMs: NOW - 10 * MINUTE,
  renewedMs: NOW - 2000, leaseMs: 15_000, requests: { read: 310, write: 0, peer: 12 },
  history: [past(40, 'server-1', 'released'), past(30, 'server-3-in-a-place-with-a-long-name', 'expired'), past(20, 'server-2', 'released')],
};
const slot = (minutes, outcome, by = 'server-1') => ({ slot: NOW - minutes * MINUTE, outcome, by });
const SLOTS = {
  ...NOBODY, term: NOW - 5 * MINUTE, transitions: 1, parked: false,
  history: [slot(35, 'ok'), slot(30, 'ok'), slot(25, 'failed', 'server-2'), slot(10, 'ok')], lastSlot: slot(5, 'ok'),
};
const MONDAY = { ...SLOTS, history: [], lastSlot: slot(60 * 60, 'ok') };
const HOSTILE = '<img src=x onerror="hacked=1">"\'`${hacked=1}<script>hacked=1</script>\u202egnp.exe\u0000';
const FOULED = {
  ...LED, group: HOSTILE, leaderId: HOSTILE, serverId: HOSTILE, role: 'candidate', term: HOSTILE, transitions: HOSTILE, leaseMs: HOSTILE, renewedMs: { valueOf: 1 },
  error: HOSTILE.repeat(9), paused: { by: HOSTILE, why: HOSTILE, until: HOSTILE }, waiting: { reason: HOSTILE, message: HOSTILE }, requests: { read: HOSTILE, write: [HOSTILE], peer: {} },
  history: [{ ...past(9, HOSTILE, HOSTILE), from: HOSTILE, to: -1 }, slot(3, HOSTILE, HOSTILE), { slot: HOSTILE }, past(9, 'constructor', '__proto__')],
};

const problems = fs.existsSync(CHROMIUM) ? false : 'there is no Chromium for this machine';

describe('the page', { skip: problems }, () => {
  let browser;
  before(async () => {
    const folder = newFolder('page');
    // Without a font Chromium ends; the package's own configuration looks for its fonts in places of another machine.
    const FONTCONFIG_FILE = path.join(folder, 'fonts.conf');
    fs.writeFileSync(FONTCONFIG_FILE, `<fontconfig><dir>${path.join(CHROMIUM, 'fonts/fonts')}</dir><cachedir>${folder}</cachedir></fontconfig>`);
    const env = { ...process.env, LD_LIBRARY_PATH: path.join(CHROMIUM, 'al2023/lib'), FONTCONFIG_FILE };
    browser = await chromium.launch({ executablePath: path.join(CHROMIUM, 'chromium'), args: ARGS, env: { ...env, TMPDIR: folder } });
    atEnd(() => browser.close());
  });

  /** The address of a server of this handler. */
  const served = async (handler) => `${(await kept(serve(handler))).url}/`;

  /** The page over what `answer` says to `/status.json`: `[status, object]`. `told` is all that the browser complained of. */
  const shown = async (answer, { width = 1280, dark = false, ready = 'section' } = {}) => {
    const elector = member(new MemoryStorage(), { page: true });
    const asked = [];
    const own = nodeHandler(elector);
    const url = await served((incoming, outgoing) => {
      if (!incoming.url.startsWith('/status.json')) return own(incoming, outgoing);
      asked.push({ url: incoming.url, authorization: incoming.headers.authorization });
      const [status, body] = answer(asked.at(-1));
      outgoing.writeHead(status, { date: new Date(NOW).toUTCString() }).end(JSON.stringify(body));
    });
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: dark ? 'dark' : 'light', locale: 'en-GB', timezoneId: 'UTC' });
    const told = [];
    page.on('console', (message) => message.type() === 'error' && told.push(message.text()));
    page.on('pageerror', (error) => told.push(error.message));
    page.on('dialog', (dialog) => told.push(`dialog ${dialog.message()}`));
    page.on('request', (request) => request.url().startsWith(url) || told.push(`request ${request.url()}`));
    await page.clock.install({ time: NOW });
    await page.goto(url);
    await page.locator(ready).first().waitFor();
    return { page, asked, told, text: () => page.locator('main').innerText() };
  };

  test('it shows a member as it is, and follows it', async () => {
    const elector = member(await newGroup(), { page: true });
    const url = await served(nodeHandler(elector));
    await started(elector);
    const page = await browser.newPage();
    const answer = await page.goto(url);
    assert.match(answer.headers()['content-security-policy'], /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self';/);
    await page.getByText('This member, a, has led a since').waitFor();
    await elector.stop();
    await page.getByText('This member is not started, so it does not know who leads a.').waitFor({ timeout: 15_000 });
    const off = member(new MemoryStorage());
    assert.equal((await off.handleRequest(new Request('http://localhost/'))).status, 404, 'only where it is asked for');
    await page.close();
  });

  for (const [name, status, says] of [
    ['led', LED, /server-1 has led leader\/report\.json since 11:50:00/],
    ['none', { ...NOBODY, waiting: { reason: 'newGroup', untilMs: null, message: 'the group is new' } }, /Nobody leads leader\/report\.json\./],
    ['stopped', { ...NOBODY, role: 'stopped' }, /^(?![^]*Nobody leads)[^]*This member is not started, so it does not know who leads leader\/report\.json\./],
    ['paused', { ...LED, leaderId: null, role: 'candidate', paused: { by: 'ann', why: 'moves the bucket', since: NOW - MINUTE, until: NOW + MINUTE } }, /It is paused by ann \(moves the bucket\) until 12:01:00: nobody claims it\./],
    ['silent', { ...LED, role: 'none', renewedMs: NOW - 5 * MINUTE }, /^(?![^]*leads now)[^]*server-1 led leader\/report\.json last, and has not renewed its lease since 11:55:00/],
    ['slots', SLOTS, /Nobody leads leader\/report\.json now\. The slot of 11:55:00 ended well; no slot since\./],
    ['weekend', MONDAY, /^(?![^]*overdue)[^]*ended well; no slot since\./],
    ['skewed', { ...LED, renewedMs: NOW - 5 * MINUTE }, /server-1 has led leader\/report\.json since/],
    ['other make', { ...LED, role: 'none', leaseMs: null, acquiredMs: null }, /^(?![^]*leads now)[^]*The record names server-1 as the leader/],
    ['failing', { ...LED, error: 'https://s3.example/jobs/leader/report.json: read: no answer within 1800 ms' }, /There is a problem\.[^]*no answer within 1800 ms/],
    ['groups', { groups: [LED, { ...SLOTS, group: 'reports.json' }] }, /leader\/report\.json[^]*reports\.json/],
    ['hostile', FOULED, /<img src=x onerror=/],
  ]) {
    test(`${name}: on a phone in the light theme and on a desk in the dark one, by everybody who reads it`, async () => {
      for (const [width, dark] of [[390, false], [1280, true]]) {
        const { page, told, text } = await shown(() => [200, status], { width, dark });
        assert.match(await text(), says);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${name} fits into ${width} px`);
        const { violations } = await page.evaluate(`${axe.source}; axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'] })`);
        assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), []);
        assert.equal(await page.evaluate(() => [typeof hacked, document.querySelectorAll('img, main script').length].join()), 'undefined,0');
        assert.deepEqual(told, []);
        await page.close();
      }
    });
  }

  test('it asks every five seconds, less often while the server fails, and not at all while nobody looks', async () => {
    let status = 200;
    const { page, asked, text } = await shown(() => [status, LED]);
    await page.clock.pauseAt(NOW + 3000);
    const after = async (ms) => {
      const before = asked.length;
      await page.clock.runFor(ms);
      // Its next wait begins with the answer, which takes real time.
      await new Promise((resolve) => setTimeout(resolve, 200));
      return asked.length - before;
    };
    assert.equal(await after(5_000), 1);
    assert.deepEqual([await after(4_999), await after(1)], [0, 1]);
    status = 500;
    assert.equal(await after(5_000), 1);
    assert.match(await text(), /the server answers with status 500; the next attempt is in 10 s/);
    assert.deepEqual([await after(9_999), await after(1), await after(19_999), await after(1)], [0, 1, 0, 1]);
    status = 200;
    const look = (hidden) => page.evaluate((is) => {
      Object.defineProperty(document, 'hidden', { value: is, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    await look(true);
    assert.equal(await after(10 * MINUTE), 0);
    await look(false);
    await page.waitForFunction(() => document.querySelector('#note').hidden);
    await page.close();
  });

  test('where a token is needed it is asked for, by keyboard alone, and stands in no address', async () => {
    const allowed = ({ authorization }) => (authorization === `Bearer ${TOKEN}` ? [200, LED] : [401, { error: 'no' }]);
    const { page, asked, text } = await shown(allowed, { width: 390, ready: '#login' });
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This token is not the right one.').waitFor();
    await page.keyboard.press('Control+A');
    await page.keyboard.type(TOKEN);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Show');
    await page.keyboard.press('Enter');
    await page.getByText('server-1 has led').first().waitFor();
    assert.ok(!(await text()).includes(TOKEN) && !page.url().includes(TOKEN) && asked.every(({ url }) => url === '/status.json'));
    await page.reload();
    await page.getByText('server-1 has led').first().waitFor();
    await page.close();
  });
});
