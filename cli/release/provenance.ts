import { sha256, type Artefact } from './checksums.ts'
import { packageUrl, type DebianPackage } from './image-base.ts'

type Inputs = {
  version: string
  commit: string
  lockFile: Uint8Array
  targets: readonly string[]
  /** Parts that the release does not have. */
  without: readonly string[]
  /** Version of nfpm, if it built packages. */
  nfpm: string | null
  /** Packages whose files are in the image. */
  debian: readonly DebianPackage[]
}

/**
 * Describes what a release was made from, as an in-toto statement with SLSA provenance. It names neither the machine nor the
 * time, so that a second build gives the same bytes: that is the proof, and this names the inputs for it.
 */
export function provenance(inputs: Inputs, artefacts: readonly Artefact[]) {
  const { version, commit, lockFile, targets, without, nfpm, debian } = inputs
  const flags = [
    `--targets ${targets.join(',')}`,
    ...(without.length > 0 ? [`--without ${without.join(',')}`] : []),
  ]
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artefacts.map(({ name, digest }) => ({ name, digest: { sha256: digest } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:otpd:build:release:1',
        externalParameters: {
          version,
          targets,
          without,
          commands: ['npm ci', `npm run release -- ${flags.join(' ')}`],
        },
        resolvedDependencies: [
          { name: 'otpd', digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: sha256(lockFile) } },
          { name: `bun ${Bun.version}`, digest: { gitCommit: Bun.revision } },
          ...(nfpm === null ? [] : [{ name: `nfpm ${nfpm}` }]),
          ...debian.map((one) => ({ uri: packageUrl(one) })),
        ],
      },
      runDetails: { builder: { id: 'urn:otpd:builder:npm-run-release:1' } },
    },
  }
  return `${JSON.stringify(statement, null, 2)}\n`
}
