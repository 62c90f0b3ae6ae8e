// The types for `require`: those of aws.d.ts, not a copy, so that values from either way fit the other.
import type * as aws from './aws.js' with { 'resolution-mode': 'import' };

export declare const DynamoDBStorage: typeof aws.DynamoDBStorage;
export type DynamoDBStorage = aws.DynamoDBStorage;
export declare const Route53Storage: typeof aws.Route53Storage;
export type Route53Storage = aws.Route53Storage;
export declare const EpochStorage: typeof aws.EpochStorage;
export type EpochStorage = aws.EpochStorage;
export declare const S3Storage: typeof aws.S3Storage;
export type S3Storage = aws.S3Storage;
export declare const R2Storage: typeof aws.R2Storage;
export type R2Storage = aws.R2Storage;
export type { ServiceOptions } from './aws.js' with { 'resolution-mode': 'import' };
