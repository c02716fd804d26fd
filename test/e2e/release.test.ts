import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { hostTarget } from '../../cli/release/targets.ts'
import { version } from '../../cli/version.ts'
import { runToEnd, startServer } from '../helpers/binary.ts'
import { findProgram } from '../helpers/external-program.ts'
import { installScriptPath, sha256 } from '../helpers/install-script.ts'

/** Builds a release for this machine from what is checked out, and looks at its files. */

const root = resolve(import.meta.dir, '../..')
const target = hostTarget()?.name ?? ''
const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }
// Finds no mmdebstrap: parts whose tools are missing must be named and left out.
const runRelease = (...args: string[]) =>
  runToEnd([process.execPath, join(root, 'cli/release.ts'), ...args], {
    env: { ...env, PATH: join(out, 'tools') },
    cwd: root,
  })

let out: string
let folder: string
const archive = () => join(folder, `otpd-${version}-${target}.tar.gz`)
const unpacked = (name: string) => join(out, 'unpacked', `otpd-${version}-${target}`, name)

beforeAll(async () => {
  out = mkdtempSync(join(tmpdir(), 'otpd-release-'))
  folder = join(out, version)
  mkdirSync(join(out, 'tools'))
  symlinkSync(findProgram('git') ?? '', join(out, 'tools/git'))
  const result = await runRelease('--snapshot', '--targets', target, '--out', out, '--without', 'packages')
  expect(result).toMatchObject({ exitCode: 8, stderr: '' })
  expect(result.stdout).toContain(`${target}: served, sent and verified in`)
  expect(result.stdout).toContain('image: not built, mmdebstrap (apt-get install mmdebstrap) is missing\n')
  expect(result.stdout).toEndWith(
    '\nLeft out: image, because this machine lacks mmdebstrap (apt-get install mmdebstrap).\nThe release is incomplete: exit code 8. --targets and --without leave parts out on purpose.\nNot signed: a snapshot never is.\n',
  )
  await runToEnd(['sh', '-c', `mkdir unpacked && tar -xzf ${archive()} -C unpacked`], { cwd: out, env })
})
afterAll(() => rmSync(out, { recursive: true, force: true }))

test('a release lists its files with their checksums, and what they were made from', () => {
  const names = readdirSync(folder)
  expect(names).toEqual(expect.arrayContaining(['SHA256SUMS', 'install.sh', 'provenance.json']))
  const listed = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n')
  expect(listed.map((line) => line.slice(66)).toSorted()).toEqual(
    names.filter((name) => name !== 'SHA256SUMS').toSorted(),
  )
  for (const line of listed)
    expect(line.slice(0, 64)).toBe(sha256(readFileSync(join(folder, line.slice(66)))))
  expect(readFileSync(join(out, 'latest'), 'utf8')).toBe(`${version}\n`)
  expect(readFileSync(join(out, 'versions'), 'utf8')).toBe(`${version}\n`)
  const statement = JSON.parse(readFileSync(join(folder, 'provenance.json'), 'utf8'))
  expect(statement.subject).toContainEqual({
    name: `otpd-${version}-${target}.tar.gz`,
    digest: { sha256: sha256(readFileSync(archive())) },
  })
})

test('every package of the list of contents has its licence in the archive', () => {
  const bill = JSON.parse(readFileSync(join(folder, `otpd-${version}.cdx.json`), 'utf8'))
  const licences = readFileSync(unpacked('THIRD-PARTY-LICENSES'), 'utf8')
  const packages = (
    bill.components as {
      name: string
      version: string
      purl: string
      hashes?: unknown
      description?: string
    }[]
  ).filter(({ purl }) => purl.startsWith('pkg:npm/'))
  expect(packages.length).toBeGreaterThan(60)
  expect(packages.map(({ name }) => name)).toEqual(expect.arrayContaining(['elysia', 'react', 'vue']))
  expect(packages.filter(({ name, version }) => !licences.includes(`\n${name} ${version} (`))).toEqual([])
  expect(
    packages.filter(({ hashes, description }) => hashes === undefined && description === undefined),
  ).toEqual([])
})

test('the executable knows its commit, target and schema, and the archive has the files of a package', async () => {
  const { stdout } = await runToEnd([unpacked('otpd'), 'version', '--json'], { env })
  const newest = readdirSync(join(root, 'migrations/sqlite')).toSorted().at(-1)
  expect(JSON.parse(stdout).data).toMatchObject({
    version,
    target,
    commit: expect.stringMatching(/^[0-9a-f]{40}(-dirty)?$/),
    schema: newest?.replace('.sql', ''),
  })
  expect(readFileSync(unpacked('otpd.1'), 'utf8')).toStartWith('.TH OTPD 1 "20')
  expect(readFileSync(unpacked('otpd.service'), 'utf8')).toStartWith('[Unit]\n')
  expect(readFileSync(unpacked('skills/otpd/SKILL.md'), 'utf8')).toStartWith('---\nname: otpd\ndescription: ')
  expect(readdirSync(unpacked('completions')).toSorted()).toEqual(['_otpd', 'otpd.bash', 'otpd.fish'])
})

const mandoc = Bun.which('mandoc')
test.skipIf(mandoc === null)('mandoc finds nothing but long lines in the manual page', async () => {
  const { stdout } = await runToEnd([mandoc ?? '', '-T', 'lint', '-W', 'warning', unpacked('otpd.1')], {
    env,
  })
  expect(stdout).toBe('')
})

/** Installs packages of the release into a new project, without a registry. @returns its folder */
async function npmInstall(name: string, ...args: string[]): Promise<string> {
  const project = join(out, name)
  mkdirSync(project)
  const flags = ['--no-audit', '--no-fund', '--no-update-notifier', '--offline', '--loglevel=error']
  const installed = await runToEnd(['npm', 'install', ...flags, ...args], {
    env: { ...env, HOME: out },
    cwd: project,
  })
  expect(installed).toMatchObject({ exitCode: 0, stderr: '' })
  return project
}
const npmFile = (name: string) => join(folder, `${name}-${version}.tgz`)

test('npm installs the client, which has no dependency, and says what it is', async () => {
  const project = await npmInstall('client', npmFile('otpd-client'))
  expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['otpd'])
  const program = "import('otpd/client').then((client) => console.log(Object.keys(client).join()))"
  const { stdout } = await runToEnd(['node', '-e', program], { env, cwd: project })
  expect(stdout).toContain('WebhookVerifyError')
  const files = readdirSync(join(project, 'node_modules/otpd'))
  expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'index.d.ts']))
  const manifest = JSON.parse(readFileSync(join(project, 'node_modules/otpd/package.json'), 'utf8'))
  expect(manifest).toMatchObject({
    license: 'MIT',
    engines: { node: '>=20' },
    description: expect.any(String),
  })
  // Types name files that are there.
  for (const file of files.filter((name) => name.endsWith('.d.ts')))
    for (const [, name] of readFileSync(join(project, 'node_modules/otpd', file), 'utf8').matchAll(
      /from '\.\/([^']+)'/g,
    ))
      expect(files).toContain(name?.replace(/\.js$/, '.d.ts') ?? '')
})

describe('the package of npm', () => {
  let project: string
  const otpd = () => join(project, 'node_modules/.bin/otpd')
  beforeAll(async () => {
    project = await npmInstall('npm', npmFile('otpd'), npmFile(`otpd-${target}`))
  })

  test('has the program of this machine, and the client', async () => {
    const { stdout } = await runToEnd([otpd(), 'version'], { env, cwd: project })
    expect(stdout).toStartWith(`otpd ${version} (`)
    const unknown = await runToEnd([otpd(), 'nothing'], { env, cwd: project })
    expect(unknown).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('nothing') })
    const program = "import('otpd/client').then(({ Otpd }) => console.log(typeof Otpd))"
    expect((await runToEnd(['node', '-e', program], { env, cwd: project })).stdout).toBe('function\n')
  })

  test('starts the server, and ends it with SIGTERM', async () => {
    const server = await startServer({ binary: otpd() })
    expect((await fetch(`${server.url}/v1/health/ready`)).status).toBe(200)
    expect(await server.stop('SIGTERM')).toBe(0)
    expect(await fetch(`${server.url}/v1/health`).catch(() => 'gone')).toBe('gone')
  })

  test('is not upgraded by otpd upgrade', async () => {
    const refused = await runToEnd([otpd(), 'upgrade', '--from', out, '--allow-unsigned'], {
      env,
      cwd: project,
    })
    expect(refused).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('npm install otpd@latest') })
  })

  test('without optional packages names the one that is missing', async () => {
    const bare = await npmInstall('bare', npmFile('otpd'), '--omit=optional')
    const failed = await runToEnd([join(bare, 'node_modules/.bin/otpd'), 'version'], { env, cwd: bare })
    expect(failed).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`@otpd/${target} is not installed`),
    })
  })
})

test('install.sh installs the archive', async () => {
  const prefix = join(out, 'prefix')
  const installed = await runToEnd(['sh', installScriptPath, '--from', archive()], {
    env: { ...env, PREFIX: prefix },
  })
  expect(installed.stdout).toContain(`otpd ${version} installed as ${prefix}/bin/otpd`)
  expect(readFileSync(join(prefix, 'share/man/man1/otpd.1'), 'utf8')).toContain('otpd serve')
})

test('a second build gives the same bytes, and --verify names the file that was changed', async () => {
  appendFileSync(join(folder, 'install.sh'), '\n')
  expect(await runRelease('--verify', out)).toMatchObject({ exitCode: 1, stdout: 'differs: install.sh\n' })
})
