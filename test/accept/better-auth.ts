import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTwilioShop } from '../helpers/twilio-shop.ts'
import { runToEnd } from '../helpers/run-to-end.ts'
import type { AcceptCheck } from './run.ts'

/** The recipe of the guide, in the real framework. */
export const betterAuthCheck: AcceptCheck = {
  name: 'better-auth',
  title: 'the phone plugin of better-auth 1.7.25 with codes of otpd',
  needs: ['node', 'npm'],
  async run(print) {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-better-auth-'))
    const shop = await startTwilioShop()
    try {
      cpSync(join(import.meta.dir, 'better-auth'), folder, { recursive: true })
      const client = join(import.meta.dir, '../../cli/build-client.ts')
      await runToEnd([process.execPath, client, '--outdir', join(folder, 'client')])
      const install = ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', 'better-auth@1.7.25']
      await runToEnd(install, { cwd: folder })
      const env = {
        OTPD_URL: shop.server.url,
        OTPD_CLIENT_ID: shop.test.headers['x-client-id'] ?? '',
        OTPD_CLIENT_SECRET: shop.test.headers['x-client-secret'] ?? '',
        OTPD_API_KEY: shop.test.headers['x-api-key'] ?? '',
      }
      print((await runToEnd(['node', 'recipe.mjs'], { cwd: folder, env })).trim())
    } finally {
      await shop.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
