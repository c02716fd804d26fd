import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packArchive } from './archive.ts'
import { checksums, sha256, type Artefact } from './checksums.ts'
import { commonFiles } from './contents.ts'
import { installScript } from './install-script.ts'
import { listBundledPackages, thirdPartyLicences } from './licences.ts'
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

export type ReleasePlan = ReleaseInputs & {
  targets: readonly Target[]
  /** Keeps a target that this machine cannot run, instead of leaving it out. */
  keepsUntried: boolean
  /** Builds only: the files were tried when they were released. */
  skipsSmokeRuns: boolean
  print: (line: string) => void
}

/**
 * Builds the files of a release into a new folder, without a signature.
 *
 * @returns the targets that could not be tried, with the reason
 * @throws Error if a build or a smoke run fails, or a licence is not allowed
 */
export async function produceRelease(plan: ReleasePlan, folder: string): Promise<string[]> {
  const { root, version, at, print } = plan
  mkdirSync(folder, { recursive: true })
  const untried: string[] = []
  const built: Target[] = []
  const artefacts: Artefact[] = []
  const save = (name: string, content: Uint8Array | string) => {
    const bytes = Buffer.from(content)
    writeFileSync(join(folder, name), bytes)
    artefacts.push({ name, digest: sha256(bytes) })
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
      if (kind === 'missing') untried.push(target.name)
      if (kind === 'missing' && !plan.keepsUntried) continue
    }
    const executable = { name: 'otpd', content: readFileSync(binary), isExecutable: true }
    const files = [executable, ...described.files].map((file) => ({
      ...file,
      name: `otpd-${version}-${target.name}/${file.name}`,
    }))
    save(`otpd-${version}-${target.name}.tar.gz`, packArchive(files, Date.parse(at) / 1000))
    built.push(target)
  }
  if (described === undefined || built.length === 0) return untried
  const lockFile = readFileSync(join(root, 'package-lock.json'))
  save(`otpd-${version}.cdx.json`, bill(version, at, described.packages, JSON.parse(lockFile.toString())))
  save('install.sh', installScript(root))
  const inputs = { version, commit: plan.commit, lockFile, targets: built.map(({ name }) => name) }
  save('provenance.json', provenance(inputs, artefacts))
  writeFileSync(join(folder, 'SHA256SUMS'), checksums(artefacts))
  return untried
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
