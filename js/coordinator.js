import { checkNames, optionsOf, wrongOption } from './errors.js';

const NAMES = ['shardId', 'ownerId', 'leaseDuration', 'renewPeriod', 'locker'];

/** The options of `new Elector` that a coordinator's mean: the same five, by other names. */
export const coordinator = (options) => {
  const given = optionsOf(options, `coordinator takes an object with ${NAMES.join(', ')}`);
  checkNames(given, NAMES, 'coordinator');
  // Without a locker the variables would name a store, and nobody would have said so.
  const missing = NAMES.find((name) => given[name] === undefined || given[name] === null);
  if (missing) throw wrongOption(missing, given[missing], `a coordinator has all of ${NAMES.join(', ')}`);
  const { shardId, ownerId, leaseDuration, renewPeriod, locker } = given;
  return { storage: locker, lockfilePath: shardId, serverId: ownerId, leaderTimeout: leaseDuration, frequentInterval: renewPeriod };
};
