// The profiles of AWS's files: keys, sessions, roles, single sign-on and processes.
import { fromIni } from '@aws-sdk/credential-providers';
import { loadSharedConfigFiles } from '@smithy/core/config';

const DEFAULT_REGION = 'us-east-1';

/** The keys of a profile as variables, with its region and endpoint where none are set, and a provider that gives them anew.
 * The native command line takes the same (src/cli/profile.rs): the same flags must not lead to two stores.
 * @throws Error where there is no such profile, or it gives no keys. */
export const readProfile = async (profile = 'default', variables = {}) => {
  const { configFile, credentialsFile } = await loadSharedConfigFiles();
  const { region: own, endpoint_url: endpoint } = { ...credentialsFile[profile], ...configFile[profile] };
  const region = variables.EDGELECT_REGION ?? variables.AWS_REGION ?? variables.AWS_DEFAULT_REGION ?? own;
  const provider = fromIni({ profile, ignoreCache: true, clientConfig: { region: region ?? DEFAULT_REGION } });
  const { accessKeyId, secretAccessKey, sessionToken } = await provider();
  const keys = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken };
  const place = { ...(region && { AWS_REGION: region }), ...(endpoint && { AWS_ENDPOINT_URL: variables.AWS_ENDPOINT_URL ?? endpoint }) };
  return { provider, variables: { ...keys, ...place } };
};
