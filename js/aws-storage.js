// The storages of `edgelect/aws`. An elector over one of them lives in the wasm that is here, and not in the package's own.
import { keepBucket } from './bucket.js';
import * as glue from './dist/aws/edgelect.js';
import { Wasm } from './wasm.js';

const wasm = new Wasm(glue);

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
