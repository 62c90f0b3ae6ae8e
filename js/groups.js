// The groups of one Worker: what each of them sees of the variables and bindings.
const MOST = 16;
const NAME = /^[a-z0-9-]{1,32}$/;
/** `EDGELECT_SUSTAIN__REPORTS`: no variable has two underscores in its own name. */
const OVERRIDE = /^((?:EDGELECT|AWS)_\w*?|JOB)__(\w*)$/;
/** What names a store or a job besides the binding: a group's own binding takes its place. */
const BESIDE = {
  EDGELECT_R2: ['EDGELECT_ENDPOINT', 'EDGELECT_BUCKET', 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'],
  JOB: ['EDGELECT_JOB_URL'],
};
/** What `src/cron.rs` takes for a trigger's text. */
const FIELDS = /^[a-z\d*/,#?-]+(?: [a-z\d*/,#?-]+){4}$/i;
const LIST = 'EDGELECT_GROUPS';
const PATH = 'EDGELECT_LOCKFILE_PATH';
const SUBREQUESTS = 'EDGELECT_SUBREQUESTS';
const JOB_URL = 'EDGELECT_JOB_URL';
/** Cloudflare lets one event wait for six answers at once; the renewals of all groups need one of them. */
const MOST_CALLS = 5;
/** The requests of one event on Cloudflare's free plan, and what EDGELECT_SUBREQUESTS may be. */
const FREE = 50;
const [LEAST_REQUESTS, MOST_REQUESTS] = [10, 100_000];

/** A variable that can't be used. Its message is for the log. */
export class Refused extends Error {
  constructor(variable, value, rule) {
    super(`${variable} = ${value}: ${rule}`);
    this.variable = variable;
  }
}

/** The Worker's groups, in the order of `EDGELECT_GROUPS`; without that one group, whose name is undefined. Each has an
 * `env` of its own, and `source(variable)` is the name under which one of its variables was set. */
export const groupsOf = (env) => {
  const names = namesIn(env[LIST]);
  const common = Object.keys(env).filter((name) => /^(EDGELECT_|AWS_|JOB$)/.test(name) && name !== LIST && !OVERRIDE.test(name));
  const overrides = overridesIn(env, names);
  if (names.length === 0) return [groupOf(undefined, env, common, [])];
  if (isSet(env[PATH])) {
    throw new Refused(PATH, shown(env[PATH]), `with ${LIST} each group has a lease of its own: remove this variable; ${PATH}__${suffixOf(names[0])} is that of ${names[0]}`);
  }
  const groups = names.map((name) => groupOf(name, env, common, overrides.filter(({ suffix }) => suffix === suffixOf(name))));
  for (const group of groups) {
    const other = groups.find(({ env }) => `${env[PATH]}` === `${group.env[PATH]}`);
    if (other === group) continue;
    const set = [group, other].map(({ source }) => source(PATH)).find((source) => source !== PATH);
    throw new Refused(set, shown(group.env[PATH]), `the groups ${other.name} and ${group.name} would have one lease and be one group: give each a path of its own`);
  }
  return groups;
};

/** The groups that run on a trigger, each with its share of the requests that the trigger may make. */
export const groupsFor = (env, trigger) => {
  const groups = groupsOf(env).filter((group) => isFor(group, trigger));
  checkCalls(groups);
  return groups.map((group) => withShare(group, groups, env[SUBREQUESTS]));
};

/** The group of a lockfile path, without a path the first one, with the share that it has on its fullest trigger. */
export const groupAt = (env, path) => {
  const groups = groupsOf(env);
  const group = path === null ? groups[0] : groups.find((one) => `${one.env[PATH]}` === path);
  if (!group) return undefined;
  const crons = groups.map(({ env: { EDGELECT_CRON: cron } }) => (isSet(cron) ? plain(cron) : undefined));
  const onEach = [undefined, ...crons].filter((cron) => isFor(group, cron)).map((cron) => groups.filter((one) => isFor(one, cron)));
  onEach.forEach(checkCalls);
  const fullest = onEach.reduce((most, found) => (found.length > most.length ? found : most), [group]);
  return withShare(group, fullest, env[SUBREQUESTS]);
};

// A text that is no cron is for all triggers: so it is refused by name, and not for ever without a word.
const isFor = ({ env: { EDGELECT_CRON: cron } }, trigger) =>
  !isSet(cron) || !FIELDS.test(plain(cron)) || plain(cron) === plain(trigger);

const plain = (cron) => String(cron).trim().replace(/\s+/g, ' ');

/** Refuses groups of one trigger whose jobs would hold all of its connections: a seventh request waits for one of them, and no
 * renewal would leave before the leases are over. */
const checkCalls = (groups) => {
  const calling = groups.filter(({ env }) => isSet(env[JOB_URL]));
  if (calling.length <= MOST_CALLS) return;
  const last = calling[MOST_CALLS];
  const names = calling.map(({ name }) => name).join(', ');
  throw new Refused(last.source(JOB_URL), '(not shown)', `the groups ${names} call a URL on one trigger, each call holds one of the trigger's six `
    + `connections until its job has answered, and with six of them no lease could be renewed: at most ${MOST_CALLS} for each trigger; give `
    + `groups triggers of their own, such as EDGELECT_CRON__${suffixOf(last.name)}`);
};

/** A group's own EDGELECT_SUBREQUESTS is its share; what is left of the common one is shared by the others evenly. */
const withShare = (group, groups, set) => {
  const isOwn = ({ source }) => source(SUBREQUESTS) !== SUBREQUESTS;
  const { length } = groups.filter((one) => !isOwn(one));
  if (groups.length === 1) return group;
  const common = isSet(set) ? String(set) : String(FREE);
  const limit = Number(common);
  // Refused where all variables are.
  if (!/^\d+$/.test(common) || limit < LEAST_REQUESTS || limit > MOST_REQUESTS) return group;
  const taken = groups.filter(isOwn).map(({ env }) => Number(env[SUBREQUESTS])).filter((own) => own > 0);
  const whole = `one trigger may make${isSet(set) ? '' : ' (the default)'}`;
  const left = limit - taken.reduce((sum, own) => sum + own, 0);
  const share = Math.floor(left / length);
  if (length > 0 ? share < LEAST_REQUESTS : left < 0) {
    const few = `${Math.max(share, 0)} requests are too few for`;
    let short = `${length} groups share what ${whole}, and ${few} each`;
    if (length === 1) short = `one group has what the others leave of what ${whole}, and ${few} it`;
    if (length === 0) short = `the shares of its groups are ${limit - left} requests together, more than ${whole}`;
    throw new Refused(SUBREQUESTS, limit, `${short}: give groups triggers of their own (EDGELECT_CRON), or on the paid plan set this to 10000`);
  }
  return isOwn(group) ? group : { ...group, env: { ...group.env, [SUBREQUESTS]: String(share) } };
};

const namesIn = (list) => {
  if (!isSet(list)) return [];
  const refuse = (rule) => {
    throw new Refused(LIST, shown(list), rule);
  };
  if (typeof list !== 'string') refuse('must be names with commas between them, such as "reports,mail"');
  const names = list.split(',').map((name) => name.trim());
  if (!names.every((name) => NAME.test(name))) refuse('each name has 1 to 32 lower-case letters, digits and dashes, and a comma is between two of them');
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) refuse(`there can't be two groups of the name ${twice}`);
  if (names.length > MOST) refuse(`one Worker has at most ${MOST} groups, these are ${names.length}: deploy it twice`);
  return names;
};

const overridesIn = (env, names) => Object.keys(env).filter((name) => OVERRIDE.test(name)).map((name) => {
  const [, variable, suffix] = OVERRIDE.exec(name);
  const refuse = (rule) => {
    throw new Refused(name, '(not shown)', rule);
  };
  if (variable === LIST) refuse('the list of the groups is one for the whole Worker');
  if (!names.some((group) => suffixOf(group) === suffix)) {
    refuse(names.length === 0
      ? `it would be for one group of several, and ${LIST} is not set: set that, or take the ending off`
      : `it is for none of the groups in ${LIST}: those have the endings ${names.map((group) => `__${suffixOf(group)}`).join(', ')}`);
  }
  return { name, variable, suffix };
});

const groupOf = (name, env, common, overrides) => {
  const sources = new Map(common.map((own) => [own, own]));
  const own = overrides.filter((override) => isSet(env[override.name]));
  for (const hidden of own.flatMap(({ variable }) => BESIDE[variable] ?? [])) sources.delete(hidden);
  for (const { variable, name: set } of own) sources.set(variable, set);
  const seen = Object.fromEntries([...sources].map(([variable, source]) => [variable, env[source]]));
  if (name !== undefined && !isSet(seen[PATH])) seen[PATH] = `${name}.json`;
  return { name, env: seen, source: (variable) => sources.get(variable) ?? variable };
};

const suffixOf = (name) => name.toUpperCase().replaceAll('-', '_');

/** An empty text counts as not set. */
const isSet = (value) => value !== undefined && value !== null && value !== '';

const shown = (value) => (typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : `(${typeof value})`);
