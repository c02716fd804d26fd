import type { Io } from '../terminal/io.ts'

/**
 * Opens a page in the person's browser: `$BROWSER`, or the desktop's. False where there is none: on a machine without a
 * desktop `xdg-open` would start a browser for text inside our terminal.
 */
export function openBrowser(url: string, env: Io['env'], platform: NodeJS.Platform = process.platform) {
  const hasDesktop = platform === 'darwin' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
  const desktopOpener = platform === 'darwin' ? 'open' : 'xdg-open'
  const opener = env.BROWSER || (hasDesktop ? desktopOpener : null)
  if (opener === null) return false
  try {
    // In a group of its own, so that Ctrl-C here does not close what the person reads there.
    Bun.spawn([opener, url], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
      detached: true,
    }).unref()
    return true
  } catch {
    return false
  }
}
