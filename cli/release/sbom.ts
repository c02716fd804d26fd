import { createHash } from 'node:crypto'
import { packageUrl, type DebianPackage } from './image-base.ts'
import type { BundledPackage } from './licences.ts'

type Lock = { packages: Record<string, { version?: string; integrity?: string; resolved?: string }> }

/**
 * Lists the contents of the executable as a CycloneDX 1.6 document: the packages that the build has really taken, not all
 * those of the lock file, and Bun with its linked libraries. The packages of Debian are in the container image only.
 *
 * @param at time of the release, ISO 8601
 */
export function bill(
  version: string,
  at: string,
  packages: readonly BundledPackage[],
  lock: Lock,
  debian: readonly DebianPackage[],
): string {
  const purl = `pkg:generic/otpd@${version}`
  const components = [
    ...packages.map((one) => npmComponent(one, lock)),
    {
      ...runtime('bun', Bun.version, 'MIT', 'https://github.com/oven-sh/bun'),
      hashes: [{ alg: 'SHA-1', content: Bun.revision }],
    },
    runtime(
      'JavaScriptCore',
      process.versions['webkit'],
      'LGPL-2.0-or-later',
      'https://github.com/oven-sh/WebKit',
    ),
    runtime('tinycc', process.versions['tinycc'], 'LGPL-2.1-only', 'https://github.com/oven-sh/tinycc'),
    ...linkedVersions().map(([name, linked]) => runtime(name, linked)),
    ...debian.map(debianComponent),
  ]
  const refs = components.map((component) => component['bom-ref'])
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidFrom(JSON.stringify([version, at, refs]))}`,
    version: 1,
    metadata: {
      timestamp: at,
      component: {
        type: 'application',
        'bom-ref': purl,
        name: 'otpd',
        version,
        purl,
        licenses: [{ license: { id: 'MIT' } }],
      },
    },
    components,
    dependencies: [{ ref: purl, dependsOn: refs }],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function npmComponent({ name, version, licence, remark }: BundledPackage, { packages }: Lock) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const locked = Object.entries(packages).find(
    ([path, entry]) => path.endsWith(`node_modules/${name}`) && entry.version === version,
  )?.[1]
  const [, digest] = /^sha512-(.*)$/.exec(locked?.integrity ?? '') ?? []
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(remark !== undefined && { description: remark }),
    licenses: /^[\w.-]+$/.test(licence) ? [{ license: { id: licence } }] : [{ expression: licence }],
    ...(digest !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
  }
}

function debianComponent(one: DebianPackage) {
  const purl = packageUrl(one)
  const description = 'files of it are in the container image'
  return { type: 'library', 'bom-ref': purl, name: one.name, version: one.version, purl, description }
}

const runtime = (name: string, version = 'unknown', licence?: string, sources?: string) => {
  const purl = `pkg:generic/${name}@${version}`
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(licence !== undefined && { licenses: [{ license: { id: licence } }] }),
    ...(sources !== undefined && { externalReferences: [{ type: 'vcs', url: sources }] }),
  }
}

/** Lists the libraries that Bun names with their versions; the others of `process.versions` are described above. */
const linkedVersions = () => {
  const described = [
    'bun',
    'webkit',
    'tinycc',
    'node',
    'modules',
    'napi',
    'openssl',
    'typescript',
    'unicode',
    'v8',
    'zig',
  ]
  return Object.entries(process.versions)
    .flatMap(([name, version]): [string, string][] =>
      described.includes(name) || version === undefined ? [] : [[name, version]],
    )
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Makes a UUID of version 8 from the contents, so that the same release has the same number. */
function uuidFrom(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
