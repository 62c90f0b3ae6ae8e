// A reporter for `node --test`: one line of JSON for each test, beside what people read.

export default async function* outcomes(events) {
  for await (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.file === undefined) continue;
    // A test that is marked `todo` may fail without failing the run, so it vouches for nothing.
    const unsure = data.skip !== undefined || data.todo !== undefined;
    const outcome = unsure ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    yield `${JSON.stringify({ file: data.file, name: data.name, outcome })}\n`;
  }
}
