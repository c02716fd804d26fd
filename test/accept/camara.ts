import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCamaraShop } from '../helpers/camara-shop.ts'
import type { AcceptCheck } from './run.ts'
import { inFolder, installFromNpm, run } from './tools.ts'

const release = 'r3.2'
const documentUrl = `https://raw.githubusercontent.com/camaraproject/OTPValidation/${release}/code/API_definitions/one-time-password-sms.yaml`

/** `OTPD_TEST_CAMARA_SPEC` is CAMARA's document; without it, it is downloaded. */
export const camaraCheck: AcceptCheck = {
  name: 'camara',
  title: `a client that is generated from CAMARA one-time-password-sms ${release}, with openid-client`,
  needs: ['node', 'npm'],
  run: (print) =>
    inFolder(async (folder) => {
      const document = await readDocument()
      if (document === undefined) return print(`skipped: ${documentUrl} cannot be reached`)
      writeFileSync(join(folder, 'camara.yaml'), document)
      writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
      await installFromNpm(
        folder,
        'openapi-typescript@7.13.0',
        'openapi-fetch@0.15.0',
        'openid-client@6.8.9',
        'typescript@5.9.3',
        '@types/node@20',
      )
      await run(folder, ['node_modules/.bin/openapi-typescript', 'camara.yaml', '-o', 'camara.ts'])
      copyFileSync(join(import.meta.dir, 'camara/main.ts.txt'), join(folder, 'main.ts'))
      const flags =
        '--noEmit --strict --skipLibCheck --target esnext --module preserve --allowImportingTsExtensions'
      await run(folder, ['node_modules/.bin/tsc', ...flags.split(' '), 'main.ts'])
      const shop = await startCamaraShop()
      try {
        const { url } = shop.server
        const output = await run(folder, [process.execPath, 'main.ts'], {
          CAMARA_API_ROOT: url,
          CAMARA_ISSUER: `${url}/camara`,
          CAMARA_CLIENT_ID: shop.test.headers['x-client-id'] ?? '',
          CAMARA_CLIENT_SECRET: shop.test.authToken,
        })
        print(`${output.trim()}, and the client compiles`)
      } finally {
        await shop.stop()
      }
    }),
}

async function readDocument(): Promise<string | undefined> {
  const path = process.env['OTPD_TEST_CAMARA_SPEC']
  if (path !== undefined) return Bun.file(path).text()
  const response = await fetch(documentUrl, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
  return response?.ok ? response.text() : undefined
}
