/**
 * The storages that most groups do without, in a wasm of their own:
 *
 *     import { Elector } from 'edgelect';
 *     import { DynamoDBStorage } from 'edgelect/aws';
 *     const storage = new DynamoDBStorage({ table: 'coordination-table', region: 'eu-central-1', credentials });
 *     const elector = new Elector({ storage, lockfilePath: 'batch-processor' });
 *
 * `lockfilePath` is the shard's id. One storage serves any number of electors, one for each shard.
 */
import type { Credentials, Format } from './index.js';
import { R2Storage as OwnR2Storage, S3Storage as OwnS3Storage } from './index.js';

/** Where a service is asked, and as whom. */
export interface ServiceOptions {
  /** `https://…`; `http://` on loopback only. Default: AWS. */
  endpoint?: string;
  credentials: Credentials | (() => Credentials | Promise<Credentials>);
}

/** An item in a DynamoDB table, on shardcoordinator's layout (`pk = SHARD#{lockfilePath}`, `sk = LOCK`), beside whose members
 * it can run. The IAM policy allows `dynamodb:GetItem` and `dynamodb:PutItem` on the table. */
export class DynamoDBStorage {
  #private;
  constructor(
    options: ServiceOptions & {
      /** Its keys are `pk` and `sk`, both texts. */
      table: string;
      /** Default `us-east-1`. */
      region?: string;
    },
  );
}

/** A TXT record in a Route 53 zone, on shardcoordinator's layout (`{recordPrefix}.{lockfilePath}.{domainName}`). A zone takes
 * five changes a second, so leases are long and members few. The IAM policy allows `route53:ChangeResourceRecordSets` and
 * `route53:ListResourceRecordSets` on the zone. */
export class Route53Storage {
  #private;
  constructor(
    options: ServiceOptions & {
      /** Such as `Z1234567890ABC`. */
      hostedZoneId: string;
      /** What the record's name begins with, such as `lock`. */
      recordPrefix: string;
      /** What the record's name ends with: the zone's domain, or one below it. */
      domainName: string;
    },
  );
}

/** One object for each epoch in an S3-compatible bucket, for stores that know `If-None-Match: *` and not `If-Match`.
 * `lockfilePath` is what all their keys begin with. */
export class EpochStorage {
  #private;
  constructor(
    options: ServiceOptions & {
      bucket: string;
      /** Default `us-east-1`. */
      region?: string;
      /** `endpoint/bucket/key` instead of `bucket.endpoint/key`. Default: true except on AWS. */
      pathStyle?: boolean;
      /** How a record is written down. Default `native`. */
      format?: Format;
    },
  );
}

/** As that of the package itself, and no subclass of it: it lives in a wasm that knows `format: 'kubernetes'`. */
export class S3Storage {
  #private;
  constructor(options: ConstructorParameters<typeof OwnS3Storage>[0]);
}

/** That of the package itself, in a wasm that knows `format: 'kubernetes'`. */
export class R2Storage extends OwnR2Storage {}
