import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [cloudflareTest({ wrangler: { configPath: './wrangler.toml' } })],
  // The first test waits for workerd to start.
  test: { testTimeout: 60_000, hookTimeout: 60_000 },
});
