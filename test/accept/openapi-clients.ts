import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AcceptCheck } from './run.ts'
import { inFolder, installFromNpm, run, startDocumented } from './tools.ts'

const generatorVersion = '7.25.0'

/** Generates and compiles clients in TypeScript, Go, Python, Kotlin and Java; the Java one also verifies a code. */
export const openapiClients: AcceptCheck = {
  name: 'openapi-clients',
  title: 'clients generated from the OpenAPI document compile, and the Java one verifies a code',
  needs: ['npm', 'go', 'python3', 'mvn'],
  run: (print) =>
    inFolder(async (folder) => {
      const { server, env } = await startDocumented(folder)
      try {
        await checkTypeScript(folder)
        print('TypeScript, openapi-typescript: compiles')
        await checkTypeScriptFetch(folder)
        print('TypeScript, openapi-generator with its defaults: compiles')
        await checkGo(folder)
        print('Go, oapi-codegen with its defaults: compiles')
        await checkPython(folder)
        print('Python, openapi-python-client: every module loads')
        await checkKotlin(folder)
        print('Kotlin, openapi-generator with its defaults: compiles')
        await checkJava(folder, env)
        print(
          'Java, openapi-generator: compiles, logs in, creates an application, sends a code and verifies it',
        )
        print('C#: left out, as it needs the .NET SDK and packages of NuGet')
      } finally {
        await server.stop()
      }
    }),
}

async function checkTypeScript(parent: string) {
  const folder = makeFolder(parent, 'typescript')
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  await installFromNpm(folder, 'openapi-typescript@7.13.0', 'openapi-fetch@0.15.0', 'typescript@5.9.3')
  await run(folder, ['node_modules/.bin/openapi-typescript', '../openapi.json', '-o', 'otpd.ts'])
  const program = `import createClient from 'openapi-fetch'
import type { components, paths } from './otpd.ts'
const client = createClient<paths>({ baseUrl: 'http://localhost' })
const { data, error } = await client.POST('/v1/otp/send', { body: { phone: '+14155550100' } })
const id: string | undefined = data?.data.requestId
const code: components['schemas']['ErrorCode'] | undefined = error?.error.code
console.log(id, code)
`
  writeFileSync(join(folder, 'main.ts'), program)
  const flags = '--noEmit --strict --target esnext --module preserve --allowImportingTsExtensions'
  await run(folder, ['node_modules/.bin/tsc', ...flags.split(' '), 'main.ts'])
}

async function checkTypeScriptFetch(parent: string) {
  const folder = makeFolder(parent, 'typescript-fetch')
  await generate(folder, 'typescript-fetch', ['--additional-properties=npmName=otpd'])
  await installFromNpm(folder)
  await run(folder, ['node_modules/.bin/tsc', '--noEmit'])
  requireNames(join(folder, 'src/models/OtpVerifiedEvent.ts'), ['export interface OtpVerifiedEvent'])
}

/** Generates a client with openapi-generator, a program in Java. */
async function generate(folder: string, generator: string, options: string[] = []) {
  const jar = join(folder, '../openapi-generator.jar')
  const url = `https://repo1.maven.org/maven2/org/openapitools/openapi-generator-cli/${generatorVersion}/openapi-generator-cli-${generatorVersion}.jar`
  if (!existsSync(jar)) await Bun.write(jar, await fetch(url))
  await run(folder, [
    'java',
    '-jar',
    jar,
    'generate',
    '-i',
    '../openapi.json',
    '-g',
    generator,
    '-o',
    '.',
    ...options,
  ])
}

async function checkGo(parent: string) {
  const folder = makeFolder(parent, 'go')
  mkdirSync(join(folder, 'otpd'))
  const env = { GOBIN: folder, GOFLAGS: '-mod=mod' }
  const generator = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
  writeFileSync(join(folder, 'go.mod'), 'module accept\n\ngo 1.24\n')
  await run(folder, ['go', 'install', generator], env)
  await run(folder, ['./oapi-codegen', '-package', 'otpd', '-o', 'otpd/otpd.go', '../openapi.json'])
  await run(folder, ['go', 'mod', 'tidy'], env)
  await run(folder, ['go', 'build', './otpd'], env)
  requireNames(join(folder, 'otpd/otpd.go'), [
    'SendOtpWithResponse(',
    'ListOtpRequestsWithResponse(',
    'type SendOtpRequest struct',
    'type OtpVerifiedEvent struct',
  ])
}

async function checkPython(parent: string) {
  const folder = makeFolder(parent, 'python')
  await run(folder, ['python3', '-m', 'venv', 'env'])
  const bin = join(folder, 'env/bin')
  const env = { PATH: `${bin}:${process.env['PATH']}` }
  await run(folder, [join(bin, 'pip'), '--quiet', 'install', 'openapi-python-client==0.29.1'])
  await run(
    folder,
    [
      join(bin, 'openapi-python-client'),
      'generate',
      '--path',
      '../openapi.json',
      '--output-path',
      'client',
      '--fail-on-warning',
    ],
    env,
  )
  const program = `import importlib, pkgutil, sys
sys.path.insert(0, 'client')
import otpd_client
for module in pkgutil.walk_packages(otpd_client.__path__, 'otpd_client.'): importlib.import_module(module.name)
from otpd_client.api.otp import send_otp, verify_otp, list_otp_requests
from otpd_client.models import SendOtpRequest, ErrorCode
assert SendOtpRequest(phone='+14155550100').to_dict() == {'phone': '+14155550100'}
assert ErrorCode.RATE_LIMITED == 'RATE_LIMITED'
`
  await run(folder, [join(bin, 'python'), '-c', program])
}

async function checkKotlin(parent: string) {
  const { path } = await runMaven(parent, 'kotlin', ['compile'])
  const missing = ['apis/OTPApi', 'models/SendOtpRequest', 'models/OtpVerifiedEvent'].filter(
    (name) => !existsSync(join(path, `target/classes/otpd/${name}.class`)),
  )
  if (missing.length > 0) throw new Error(`The Kotlin client lacks ${missing.join(', ')}.`)
}

async function checkJava(parent: string, env: Record<string, string>) {
  const { output } = await runMaven(parent, 'java', ['compile', 'exec:java'], env)
  if (!output.includes('verified +14155550132')) throw new Error('The Java client verified no code.')
}

/** Runs Maven with `openapi-LANGUAGE/pom.xml`, which generates the client and compiles it. */
async function runMaven(parent: string, language: string, goals: string[], env: Record<string, string> = {}) {
  const path = join(parent, language)
  cpSync(join(import.meta.dir, `openapi-${language}`), path, { recursive: true })
  const document = `-Ddocument=${join(parent, 'openapi.json')}`
  return { path, output: await run(path, ['mvn', '-q', '-B', document, ...goals], env) }
}

function makeFolder(parent: string, name: string): string {
  const folder = join(parent, name)
  mkdirSync(folder)
  return folder
}

function requireNames(file: string, names: string[]) {
  const text = readFileSync(file, 'utf8')
  const missing = names.filter((name) => !text.includes(name))
  if (missing.length > 0) throw new Error(`${file} lacks ${missing.join(', ')}.`)
}
