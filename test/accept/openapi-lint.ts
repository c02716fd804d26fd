import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AcceptCheck } from './run.ts'
import { inFolder, installFromNpm, run, startDocumented } from './tools.ts'

/** Lints the OpenAPI document with the recommended rules of Redocly and Spectral; warnings fail too. */
export const openapiLint: AcceptCheck = {
  name: 'openapi-lint',
  title: 'the OpenAPI document passes the recommended rules of Redocly and Spectral',
  needs: ['npm'],
  run: (print) => inFolder((folder) => lint(folder, print)),
}

async function lint(folder: string, print: (line: string) => void) {
  const { server } = await startDocumented(folder)
  await server.stop()
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  await installFromNpm(folder, '@redocly/cli@2.77.0', '@stoplight/spectral-cli@6')
  // `/v1/otp/sessions/{id}` and `/v1/otp/{id}/events`: the ids begin with `ses_` and `otp_`.
  const skipped = ['--skip-rule', 'no-ambiguous-paths']
  const redocly = ['lint', '--extends', 'recommended', ...skipped, '--format', 'json', 'openapi.json']
  const { totals } = JSON.parse(await run(folder, ['node_modules/.bin/redocly', ...redocly]))
  if (totals.errors + totals.warnings > 0) throw new Error(`Redocly: ${JSON.stringify(totals)}`)
  print('Redocly, recommended rules but no-ambiguous-paths: 0 errors, 0 warnings')
  writeFileSync(join(folder, 'ruleset.yaml'), 'extends: ["spectral:oas"]\n')
  const spectral = ['lint', '--fail-severity', 'warn', '-r', 'ruleset.yaml', 'openapi.json']
  await run(folder, ['node_modules/.bin/spectral', ...spectral])
  print('Spectral, recommended rules: 0 errors, 0 warnings')
}
