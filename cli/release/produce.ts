import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packArchive } from './archive.ts'
import { checksums, sha256, type Artefact } from './checksums.ts'
import { packChart } from './chart.ts'
import { buildClient } from './client.ts'
import { commonFiles } from './contents.ts'
import { missingForImage, readDebianBase, type ImageArch } from './image-base.ts'
import { packImage } from './image.ts'
import { homebrewFormula, type BottledArchive } from './homebrew.ts'
import { installScript, readReleaseUrl } from './install-script.ts'
import { packForNpm, type BuiltTarget } from './npm.ts'
import { listBundledPackages, thirdPartyLicences } from './licences.ts'
import type { ReleasePart } from './options.ts'
import { buildPackages, hasPackages, missingForPackages, nfpmVersion } from './packages.ts'
import { provenance } from './provenance.ts'
import { bill } from './sbom.ts'
import { smokeRun } from './smoke.ts'
import type { Target } from './targets.ts'

export type ReleaseInputs = {
  root: string
  version: string
  commit: string
  /** Time of the commit, ISO 8601. Every file of the release has this time. */
  at: string
}

type ReleasePlan = ReleaseInputs & {
  targets: readonly Target[]
  /** Parts that are not wanted. */
  without: readonly ReleasePart[]
  /** Keeps a target that this machine cannot run, instead of leaving it out. */
  keepsUntried: boolean
  /** Builds only: the files were tried when they were released. */
  skipsSmokeRuns: boolean
  print: (line: string) => void
}

/** Lists that are empty in a whole release: targets that this machine cannot run, and parts whose tools it lacks. */
export type LeftOut = { untried: Missing<string>[]; absent: Missing<ReleasePart>[] }

/** A part of a release, and what this machine lacks for it. */
type Missing<Name> = { name: Name; missing: string }

/**
 * Builds the files of a release into a new folder, without a signature.
 *
 * @throws Error if a build or a smoke run fails, or a licence is not allowed
 */
export async function produceRelease(plan: ReleasePlan, folder: string): Promise<LeftOut> {
  const { root, version, commit, at, print } = plan
  const seconds = Date.parse(at) / 1000
  mkdirSync(folder, { recursive: true })
  const untried: LeftOut['untried'] = []
  const absent = listAbsentParts(plan)
  const without = [...plan.without, ...absent.map(({ name }) => name)]
  const built: BuiltTarget[] = []
  const artefacts: Artefact[] = []
  const archives: BottledArchive[] = []
  const save = (name: string, content: Uint8Array | string) => {
    const bytes = Buffer.from(content)
    writeFileSync(join(folder, name), bytes)
    utimesSync(join(folder, name), seconds, seconds)
    const digest = sha256(bytes)
    artefacts.push({ name, digest })
    return digest
  }
  const metafile = join(folder, '..', 'metafile.json')
  const describe = () => {
    const packages = listBundledPackages(root, JSON.parse(readFileSync(metafile, 'utf8')))
    const licences = thirdPartyLicences(packages, join(root, '.packaging/licences'))
    return { packages, files: commonFiles(root, licences, at.slice(0, 10)) }
  }
  let described: ReturnType<typeof describe> | undefined

  for (const target of plan.targets) {
    const binary = buildTarget(root, target, join(folder, '..', target.name), metafile)
    described ??= describe()
    if (!plan.skipsSmokeRuns) {
      const { kind, detail } = await smokeRun(target, binary)
      print(`${target.name}: ${kind === 'passed' ? detail : `not tried, ${detail} is missing`}`)
      if (kind === 'missing') untried.push({ name: target.name, missing: detail })
      if (kind === 'missing' && !plan.keepsUntried) continue
    }
    const executable = { name: 'otpd', content: readFileSync(binary), isExecutable: true }
    const { files } = described
    const archived = [executable, ...files].map((file) => ({
      ...file,
      name: `otpd-${version}-${target.name}/${file.name}`,
    }))
    const name = `otpd-${version}-${target.name}.tar.gz`
    archives.push({ target, name, digest: save(name, packArchive(archived, seconds)) })
    if (hasPackages(target) && !without.includes('packages')) {
      const inputs = { root, version, seconds, target, binary, files }
      for (const { name, content } of buildPackages(inputs, join(folder, '../package'))) save(name, content)
    }
    built.push({ target, binary })
  }
  if (described === undefined || built.length === 0) return { untried, absent }

  const texts = described.files.filter(({ name }) => /^(LICENSE|THIRD-PARTY-LICENSES)$/.test(name))
  const glibc = built.filter(({ target }) => hasPackages(target))
  const bases = without.includes('image')
    ? []
    : glibc.map(({ target, binary }) => {
        const arch: ImageArch = target.arch === 'x64' ? 'amd64' : 'arm64'
        return { arch, binary, ...readDebianBase(arch) }
      })
  if (bases.length > 0) {
    const platforms = bases.map(({ arch, binary, files }) => ({
      arch,
      base: files,
      files: [
        { name: 'usr/local/bin/otpd', content: readFileSync(binary), isExecutable: true },
        ...texts.map((file) => ({ ...file, name: `usr/share/doc/otpd/${file.name}` })),
      ],
    }))
    save(`otpd-${version}-oci.tar`, packImage({ version, commit, at, platforms }))
  }
  const client = buildClient(root, join(folder, '../client'))
  const npmPackages = packForNpm({ root, version, seconds }, built, client, texts)
  for (const { name, content } of [...npmPackages, packChart(root, version, seconds)]) save(name, content)
  const lockFile = readFileSync(join(root, 'package-lock.json'))
  const lock = JSON.parse(lockFile.toString())
  const debian = bases.flatMap(({ packages }) => packages)
  save(`otpd-${version}.cdx.json`, bill(version, at, described.packages, lock, debian))
  save('install.sh', installScript(root, version))
  const url = readReleaseUrl(root)
  if (url !== '') save('otpd.rb', homebrewFormula(version, url, archives))
  const inputs = {
    version,
    commit,
    lockFile,
    targets: built.map(({ target }) => target.name),
    without,
    debian,
  }
  const nfpm = glibc.length > 0 && !without.includes('packages') ? nfpmVersion() : null
  save('provenance.json', provenance({ ...inputs, nfpm }, artefacts))
  writeFileSync(join(folder, 'SHA256SUMS'), checksums(artefacts))
  return { untried, absent }
}

/** Lists the wanted parts whose tools this machine lacks, and prints what they need. */
function listAbsentParts({ targets, without, print }: ReleasePlan): LeftOut['absent'] {
  const parts = [
    { name: 'packages', missing: missingForPackages() },
    { name: 'image', missing: missingForImage() },
  ] as const
  const absent = parts.flatMap(({ name, missing }) => {
    const isWanted = targets.some(hasPackages) && !without.includes(name)
    return isWanted && missing !== null ? [{ name, missing }] : []
  })
  for (const part of absent) print(`${part.name}: not built, ${part.missing} is missing`)
  return absent
}

/** Builds one executable in a process of its own. @returns its path @throws Error if the build fails */
function buildTarget(root: string, { name }: Target, out: string, metafile: string): string {
  const args = ['--target', name, '--out', out, '--metafile', metafile]
  const command = [process.execPath, join(root, 'cli/build.ts'), ...args]
  const { success } = Bun.spawnSync(command, {
    cwd: root,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'inherit',
  })
  if (!success) throw new Error(`The build of ${name} failed.`)
  return join(out, 'otpd')
}
