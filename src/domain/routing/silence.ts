import { hourMs, secondMs } from '../../shared/durations.ts'

/** Ages of codes, and how many of those that people will enter they have entered by then. Usually it is more. */
const soonMs = 45 * secondMs
const soonShare = 0.6
const lateMs = 120 * secondMs
const lateShare = 0.85
/**
 * Probability at which a run of unverified codes is no longer taken for chance. A false alarm costs little, as the next verified
 * code ends it; a late one costs a code for each that is waited for, which is most where few are sent.
 */
const chance = 5e-4
/** Codes kept of a run; also the longest run that is waited for. */
const runMax = 64
/** Unverified codes that a request for another message counts as: people ask for one when none has come. */
const resentWeight = 3
/** A silent provider without a message for this long may have one, so that few unverified codes do not shut it out for days. */
const probeAfterMs = hourMs

export type SilenceDetector = ReturnType<typeof createSilenceDetector>

/**
 * Detects that the codes of a provider have stopped arriving in a country, long before they expire: none of the last ones
 * was verified, and so many are unlikely to be chance. Any verified code that was sent since the run began ends it, so that
 * slow users end a false alarm and probes find out when messages arrive again. Explored messages are probes; where there are
 * too few, silence pauses after an hour until the next message.
 */
export function createSilenceDetector() {
  /** Send times of the oldest codes since the newest verified one, in order. */
  let run: number[] = []
  let newestSentAt = 0
  /** Codes of the run after which another message was asked for. */
  let resent = 0
  /** Send time of the newest code that was verified. */
  let verifiedSentAt = 0
  /** Send time of the first code of the newest run that was taken for silence. */
  let silentSince = 0

  const isSilent = () => silentSince > verifiedSentAt

  return {
    recordSent(sentAt: number): void {
      newestSentAt = Math.max(newestSentAt, sentAt)
      if (run.length < runMax && sentAt > verifiedSentAt) run.push(sentAt)
    },

    recordVerified(sentAt: number): void {
      if (sentAt <= verifiedSentAt) return
      verifiedSentAt = sentAt
      run = run.filter((time) => time > sentAt)
      resent = 0
    },

    /** Counts that another message was asked for after a code. */
    recordResent(sentAt: number): void {
      if (sentAt > verifiedSentAt) resent++
    },

    /** Tells whether the provider is silent. @param conversion share of codes that usually is verified */
    check(conversion: number, now: number): boolean {
      if (isSilent()) return Math.max(newestSentAt, silentSince) > now - probeAfterMs
      const [first] = run
      if (first === undefined || first > now - soonMs) return false
      // Logarithms of the probability that a code which arrives is unverified at its age.
      const soon = Math.log(1 - soonShare * conversion)
      const late = Math.log(1 - lateShare * conversion)
      const logChanceMax = Math.log(chance)
      let logChance = resentWeight * resent * soon
      let length = 0
      for (const sentAt of run) {
        if (sentAt > now - soonMs) return false
        logChance += sentAt > now - lateMs ? soon : late
        length++
        if (logChance > logChanceMax && length < runMax) continue
        silentSince = first
        return true
      }
      return false
    },

    /** Tells whether a run was taken for silence and no code has ended it. */
    isSilent,

    state: () => ({ verifiedSentAt, silentSince }),

    /** Takes over what other nodes have seen. */
    merge(other: { verifiedSentAt: number; silentSince: number }): void {
      silentSince = Math.max(silentSince, other.silentSince)
      this.recordVerified(other.verifiedSentAt)
    },
  }
}
