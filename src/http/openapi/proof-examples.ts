import { proofMessages, type ProofReason } from '../../domain/model/proof.ts'
import { example } from './error-example.ts'

const proofExample = (reason: ProofReason, metadata?: Record<string, string>) =>
  example('PROOF_REJECTED', proofMessages[reason], { reason, ...(metadata && { metadata }) })

/** Examples of the errors of proofs, part of `errorExamples`. */
export const proofExamples = {
  PROOF_NOT_CONFIGURED: proofExample('PROOF_NOT_CONFIGURED'),
  PROOF_MALFORMED: proofExample('PROOF_MALFORMED'),
  PROOF_SIGNATURE: proofExample('PROOF_SIGNATURE'),
  PROOF_FOREIGN: proofExample('PROOF_FOREIGN'),
  PROOF_EXPIRED: proofExample('PROOF_EXPIRED', { expiredAt: '2026-11-20T11:00:00.000Z' }),
  PROOF_FROM_FUTURE: proofExample('PROOF_FROM_FUTURE', { issuedAt: '2026-11-20T12:05:00.000Z' }),
  PROOF_NONCE: proofExample('PROOF_NONCE'),
  PROOF_PHONE: proofExample('PROOF_PHONE'),
  PROOF_REUSED: proofExample('PROOF_REUSED'),
  PROOF_KEYS_UNAVAILABLE: example(
    'UNAVAILABLE',
    'The keys of Firebase cannot be loaded. Try again shortly, or send a code.',
    { reason: 'PROOF_KEYS_UNAVAILABLE' },
  ),
} as const
