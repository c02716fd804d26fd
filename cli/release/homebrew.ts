import type { Target } from './targets.ts'

/** An archive of a release, for Homebrew. */
export type BottledArchive = { target: Target; name: string; digest: string }

/**
 * Writes the formula for Homebrew, which installs the archives of a release.
 *
 * @param url folder of the releases
 */
export function homebrewFormula(version: string, url: string, archives: readonly BottledArchive[]): string {
  const source = (os: Target['os'], arch: Target['arch']) => {
    const found = archives.find(({ target }) => target.os === os && target.arch === arch && !target.isMusl)
    const condition = arch === 'arm64' ? 'on_arm' : 'on_intel'
    return found
      ? `    ${condition} do\n      url "${url}/${version}/${found.name}"\n      sha256 "${found.digest}"\n    end\n`
      : ''
  }
  const macos = source('darwin', 'arm64')
  return `class Otpd < Formula
  desc "Issues and verifies one-time passcodes for phone numbers"
  homepage "${url}"
  version "${version}"
  license "MIT"

${macos && `  on_macos do\n    depends_on arch: :arm64\n${macos}  end\n\n`}  on_linux do
${source('linux', 'arm64')}${source('linux', 'x64')}  end

  def install
    bin.install "otpd"
    man1.install "otpd.1"
    bash_completion.install "completions/otpd.bash" => "otpd"
    zsh_completion.install "completions/_otpd"
    fish_completion.install "completions/otpd.fish"
  end

  service do
    run [opt_bin/"otpd", "serve"]
    environment_variables OTPD_DATA_DIR: var/"lib/otpd"
    keep_alive crashed: true
    log_path var/"log/otpd.log"
    error_log_path var/"log/otpd.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/otpd version")
  end
end
`
}
