import { parseArgs } from 'node:util'
import { backupsCheck } from './backups.ts'
import { betterAuthCheck } from './better-auth.ts'
import { firstDay } from './first-day.ts'
import { imageCheck } from './image.ts'
import { camaraCheck } from './camara.ts'
import { kratosCheck } from './kratos.ts'
import { litestreamCheck } from './litestream.ts'
import { openapiClients } from './openapi-clients.ts'
import { openapiLint } from './openapi-lint.ts'
import { npmCheck } from './npm.ts'
import { packagesCheck } from './packages.ts'
import { releaseChecks } from './release.ts'
import { repositoriesCheck } from './repositories.ts'
import { supabaseCheck } from './supabase.ts'
import { tlsCheck } from './tls.ts'
import { twilioChecks } from './twilio.ts'
import { upgradeCheck } from './upgrade.ts'

/**
 * Checks with programs of others that are too heavy for `npm test`: each installs what it needs into a temporary folder,
 * runs against the compiled binary, and prints what it did.
 */
export type AcceptCheck = {
  name: string
  title: string
  /** Programs that must be installed. */
  needs: readonly string[]
  /** @throws Error if a property does not hold */
  run(print: (line: string) => void): Promise<void>
}

const checks: AcceptCheck[] = [
  openapiLint,
  openapiClients,
  ...twilioChecks,
  camaraCheck,
  betterAuthCheck,
  ...releaseChecks,
  firstDay,
  packagesCheck,
  repositoriesCheck,
  upgradeCheck,
  npmCheck,
  imageCheck,
  supabaseCheck,
  kratosCheck,
  backupsCheck,
  litestreamCheck,
  tlsCheck,
]
const print = (line: string) => void process.stdout.write(`${line}\n`)

const { values } = parseArgs({
  options: { only: { type: 'string' }, help: { type: 'boolean', default: false } },
})
const names = values.only?.split(',') ?? checks.map(({ name }) => name)
const unknown = names.find((one) => !checks.some(({ name }) => name === one))
if (values.help || unknown !== undefined) {
  print(
    `npm run accept -- [--only NAME,…]\n\n${checks.map(({ name, title }) => `  ${name}: ${title}`).join('\n')}`,
  )
  process.exit(values.help ? 0 : 2)
}

let failures = 0
for (const { name, title, needs, run } of checks) {
  if (!names.includes(name)) continue
  print(`${name}: ${title}`)
  const missing = needs.filter((program) => Bun.which(program) === null)
  if (missing.length > 0) {
    print(`  skipped: ${missing.join(', ')} is not installed`)
    continue
  }
  try {
    await run((line) => print(`  ${line}`))
  } catch (error) {
    failures++
    print(`  failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}
process.exit(failures === 0 ? 0 : 1)
