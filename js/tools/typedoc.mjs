// The documentation of the package's types, as TypeDoc makes it in build/typedoc/. Ends with 1 where TypeDoc warns: a link in a
// comment that leads nowhere, a type that is used and not exported.
import { registerHooks } from 'node:module';
import { inRoot } from './paths.mjs';

// TypeDoc needs the JavaScript API of TypeScript, which TypeScript 7 does not have.
registerHooks({ resolve: (name, context, next) => next(name === 'typescript' ? 'typescript-6' : name, context) });
const { Application } = await import('typedoc');

const app = await Application.bootstrap({
  entryPoints: ['js/index.d.ts', 'js/object-store-lock.d.ts', 'js/worker-env.d.ts'].map((file) => inRoot(file)),
  tsconfig: inRoot('js/tsconfig.json'),
  validation: { notExported: true, invalidLink: true, invalidPath: true, rewrittenLink: true, notDocumented: false },
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
  readme: 'none',
  // Links to the sources would need a remote of git, which not every checkout has.
  disableSources: true,
  excludePrivate: true,
});
const project = await app.convert();
if (project) {
  app.validate(project);
  await app.generateDocs(project, inRoot('build/typedoc'));
}
process.exit(app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0);
