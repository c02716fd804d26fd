import type { ProgressStep } from '../../src/shared/progress.ts'
import type { ProgressEstimate } from '../../src/shared/progress-estimate.ts'
import { formatBytes, formatRemaining } from '../../src/shared/human-text.ts'
import { formatNumber } from './text.ts'

type ProgressState = Pick<ProgressStep, 'step' | 'unit'> & {
  done: number | null
  total: number | null
  elapsedMs: number
}

const barColumns = 20

/**
 * Formats the progress of a step: what is done, the rate, and the time that is left.
 *
 * @param columns width to fit; null for a line without a bar
 */
export function formatProgress(state: ProgressState, columns: number | null): string {
  const { step, unit = 'bytes', done, total, elapsedMs } = state
  if (done === null || total === null || total === 0) {
    const size = total !== null && total > 0 && unit === 'bytes' ? ` (${formatBytes(total)})` : ''
    return `${step}${size}, ${formatRemaining(elapsedMs).replace('now', '0 s')} so far`
  }
  const share = Math.min(1, done / total)
  const rate = elapsedMs === 0 ? 0 : (1000 * done) / elapsedMs
  const left = done === 0 ? '' : `, ${formatRemaining(Math.max(0, total - done) / (rate / 1000))} left`
  const amounts =
    unit === 'bytes'
      ? `${formatBytes(done)} of ${formatBytes(total)}, ${formatBytes(rate)}/s`
      : `${formatCount(done)} of ${formatCount(total)} ${unit}, ${formatCount(rate)}/s`
  const percent = `${Math.floor(100 * share)}%`.padStart(5)
  const text = `${percent}  ${amounts}${share === 1 ? '' : left.replace('now left', 'almost done')}`
  if (columns === null) return `${step}:${text}`
  return withBar(share, `${text}  ${step}`, columns)
}

/** Formats how far the whole of some work is. See `formatProgress`. */
export function formatEstimate(
  { step, percent, remainingMs }: ProgressEstimate,
  columns: number | null,
): string {
  const left = remainingMs === null ? '' : `, about ${formatRemaining(Math.max(1000, remainingMs))} left`
  if (columns === null) return `${percent}%${left}: ${step}`
  return withBar(percent / 100, `${`${percent}%`.padStart(5)}${left}  ${step}`, columns)
}

function withBar(share: number, text: string, columns: number): string {
  const filled = Math.round(barColumns * share)
  const full = `[${'#'.repeat(filled)}${'.'.repeat(barColumns - filled)}]${text}`
  return full.length < columns ? full : text.trimStart().slice(0, Math.max(0, columns - 1))
}

const formatCount = (count: number) => formatNumber(Math.round(count))
