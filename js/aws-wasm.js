// The wasm of `edgelect/aws`, which knows more stores and every format; aws.js and aws-workerd.js initialise it.
import * as glue from './dist/aws/edgelect.js';
import { Wasm } from './wasm.js';

export const awsWasm = new Wasm(glue);
