// How programs of ours are told where their lease lies, and how the package is.

/** What `new S3Storage()` takes for a store of ours, reached by its own endpoint or by another. */
export const bucketOf = ({ endpoint, bucket, accessKeyId, secretAccessKey }, through = endpoint) =>
  ({ endpoint: through, bucket, region: 'us-east-1', pathStyle: true, credentials: { accessKeyId, secretAccessKey } });

/** The same for a program that is set up by variables; `options` are those of `new Elector()`. */
export const variablesOf = ({ endpoint, bucket, accessKeyId, secretAccessKey }, lockfilePath, options = {}) => ({
  EDGELECT_ENDPOINT: endpoint,
  EDGELECT_BUCKET: bucket,
  EDGELECT_REGION: 'us-east-1',
  EDGELECT_PATH_STYLE: 'true',
  EDGELECT_ACCESS_KEY_ID: accessKeyId,
  EDGELECT_SECRET_ACCESS_KEY: secretAccessKey,
  EDGELECT_LOCKFILE_PATH: lockfilePath,
  ...Object.fromEntries(Object.entries(options).map(([name, value]) => [`EDGELECT_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`, String(value)])),
});
