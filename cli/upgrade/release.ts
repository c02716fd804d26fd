import type { OnStep } from '../../src/shared/progress.ts'
import { signatureNamespaces } from '../release/signature.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'
import type { ReleaseSource } from './source.ts'

/** Signatures that an upgrade needs. */
export type SignaturePolicy = {
  /** Public key of the releases; null in a build without one. */
  key: string | null
  /** Takes releases that are not signed, or not checked for want of a key. A wrong signature is never taken. */
  allowUnsigned: boolean
}

/** As `npm run release` names releases (Semantic Versioning without build metadata). */
const versionPattern = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]+)?$/

/** Reads the newest version of a folder of releases. @throws CliError there is none, or its signature is wrong */
export async function readLatest(source: ReleaseSource, policy: SignaturePolicy): Promise<string> {
  const version = new TextDecoder().decode(await readSigned(source, '', 'latest', policy)).trim()
  if (versionPattern.test(version)) return version
  throw refused('RELEASE_INVALID', `${source.place}/latest does not contain a version.`)
}

/**
 * Downloads the program of a release, and checks signature and digest before anything of it is used.
 *
 * @param target machine that it must be for
 * @throws CliError RELEASE_NOT_FOUND, RELEASE_NOT_SIGNED, RELEASE_DAMAGED
 */
export async function downloadProgram(
  source: ReleaseSource,
  {
    version,
    target,
    policy,
    onStep,
  }: { version: string; target: string; policy: SignaturePolicy; onStep: OnStep },
): Promise<Uint8Array> {
  const sums = new TextDecoder().decode(await readSigned(source, `${version}/`, 'SHA256SUMS', policy))
  const name = `otpd-${version}-${target}.tar.gz`
  const expected = listedDigest(sums, name)
  if (expected === undefined) throw notFound(`Release ${version} has no file for ${target}.`)
  const archive = await source.read(`${version}/${name}`, (done, total) =>
    onStep({ step: `downloading ${name}`, done, ...(total !== undefined && { total }), unit: 'bytes' }),
  )
  if (archive === null) throw notFound(`${source.place}/${version}/${name} is not there.`)
  const actual = new Bun.CryptoHasher('sha256').update(archive).digest('hex')
  if (actual !== expected)
    throw refused('RELEASE_DAMAGED', `${name} is not the one in SHA256SUMS.`, [
      `expected ${expected}`,
      `actual   ${actual}`,
    ])
  const program = await findInArchive(archive, `otpd-${version}-${target}/otpd`)
  if (program === undefined) throw refused('RELEASE_DAMAGED', `${name} has no program.`)
  return program
}

async function readSigned(
  source: ReleaseSource,
  folder: string,
  file: keyof typeof signatureNamespaces,
  { key, allowUnsigned }: SignaturePolicy,
): Promise<Uint8Array> {
  const content = await source.read(folder + file)
  if (content === null)
    throw notFound(`There is no release in ${source.place}: ${folder}${file} is not there.`)
  const signature = await source.read(`${folder}${file}.sig`)
  const remedy = 'To take it all the same: --allow-unsigned'
  if (key === null || signature === null) {
    if (allowUnsigned) return content
    throw key === null
      ? refused(
          'RELEASE_NOT_CHECKED',
          'This otpd was built without the key of the releases, so it cannot check them.',
          [remedy],
        )
      : refused('RELEASE_NOT_SIGNED', `${folder}${file} in ${source.place} is not signed.`, [remedy])
  }
  const isSigned = await import('./signature.ts').then(({ isSignedBy }) =>
    isSignedBy(key, signatureNamespaces[file], content, new TextDecoder().decode(signature)),
  )
  if (isSigned) return content
  throw refused('RELEASE_NOT_SIGNED', `${folder}${file} in ${source.place} is not signed by otpd's key.`)
}

/** Returns the digest that SHA256SUMS lists for a file. */
function listedDigest(sums: string, name: string): string | undefined {
  const line = sums.split('\n').find((one) => one.slice(64).replace(/^ [ *]/, '') === name)
  return line !== undefined && /^[0-9a-f]{64} /.test(line) ? line.slice(0, 64) : undefined
}

const blockBytes = 512

/** Returns a file of a `.tar.gz`; undefined if there is none, or it is cut short. */
async function findInArchive(archive: Uint8Array, name: string): Promise<Uint8Array | undefined> {
  const { gunzipSync } = await import('node:zlib')
  let tar: Buffer
  try {
    tar = gunzipSync(archive)
  } catch {
    return undefined
  }
  for (let offset = 0; offset + blockBytes <= tar.length;) {
    const header = tar.subarray(offset, offset + blockBytes)
    const text = (start: number, length: number) =>
      header
        .subarray(start, start + length)
        .toString('latin1')
        .replace(/\0.*$/s, '')
    const size = Number.parseInt(text(124, 12), 8) || 0
    const start = offset + blockBytes
    if (text(0, 100) === name)
      return start + size <= tar.length ? tar.subarray(start, start + size) : undefined
    offset = start + Math.ceil(size / blockBytes) * blockBytes
  }
  return undefined
}

const refused = (code: string, message: string, hints: string[] = []) =>
  new CliError(exitCodes.refused, code, message, { hints: [...hints, 'Nothing was changed.'] })

const notFound = (message: string) =>
  new CliError(exitCodes.notFound, 'RELEASE_NOT_FOUND', message, {
    hints: ['Nothing was changed. Name another folder of releases with --from.'],
  })
