// The storages of `edgelect/aws`. An elector over one of them lives in the wasm that is here, and not in the package's own.
import { awsWasm as wasm } from './aws-wasm.js';
import { keepBucket, keepIn } from './bucket.js';
import { R2Storage as OwnR2Storage } from './r2.js';

/** As that of the package itself, in a wasm that knows every format. */
export class S3Storage {
  constructor(options) {
    keepBucket(this, wasm, options, { takes: 'an S3Storage takes an object with bucket and credentials' });
  }
}

/** As that of the package itself, in a wasm that knows every format. */
export class R2Storage extends OwnR2Storage {
  constructor(...all) {
    super(...all);
    keepIn(this, wasm);
  }
}

export class EpochStorage {
  constructor(options) {
    keepBucket(this, wasm, options, { kind: 'epochs', takes: 'an EpochStorage takes an object with bucket and credentials' });
  }
}

export class DynamoDBStorage {
  constructor(options) {
    keepBucket(this, wasm, options, { kind: 'dynamodb', takes: 'a DynamoDBStorage takes an object with table and credentials' });
  }
}

export class Route53Storage {
  constructor(options) {
    const takes = 'a Route53Storage takes an object with hostedZoneId, recordPrefix, domainName and credentials';
    keepBucket(this, wasm, options, { kind: 'route53', takes });
  }
}
