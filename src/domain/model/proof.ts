import { ServiceError } from './errors.ts'
import { reject, type Rejected } from './rejected.ts'

/** Kinds of proofs: tokens of Firebase Phone Number Verification, which asks the carrier of the SIM card. */
export const proofTypes = ['firebase-pnv'] as const
export type ProofType = (typeof proofTypes)[number]

/** A token that says which phone number the end user has, signed by a service that found out without a code. */
export type Proof = {
  type: ProofType
  token: string
  /** The nonce that the caller gave to the app; undefined: any. */
  nonce?: string | undefined
}

/** The content of a valid proof. */
export type VerifiedProof = {
  /** As the token has it. */
  phone: string
  /** Hash of what is signed, so that no other form of the signature makes it another token. */
  tokenHash: string
}

/**
 * Checks a proof, but not whether it was used before.
 *
 * @returns the refusal PROOF_REJECTED
 * @throws UNAVAILABLE (PROOF_KEYS_UNAVAILABLE) when the keys of its issuer cannot be loaded
 */
export type CheckProof = (proof: Proof) => Promise<VerifiedProof | Rejected>

/** Longest accepted time from issue to expiry. A used token is remembered for twice as long. */
export const proofLifetimeMaxHours = 12

/** Reasons of PROOF_REJECTED, with their messages. */
export const proofMessages = {
  PROOF_NOT_CONFIGURED:
    'This server accepts no such proofs. Set projects of [proofs.firebase], or send a code.',
  PROOF_MALFORMED: 'This is not a token of Firebase Phone Number Verification.',
  PROOF_SIGNATURE: 'The token is not signed by its issuer.',
  PROOF_FOREIGN: 'The token is of another Firebase project than those of [proofs.firebase].',
  PROOF_EXPIRED: 'The token has expired. Let the app get a new one.',
  PROOF_FROM_FUTURE: "The token was issued in the future. Compare the server's clock.",
  PROOF_NONCE: 'The token has another nonce than the call.',
  PROOF_PHONE: 'The token is of another phone number than the call.',
  PROOF_REUSED: 'This token was used before. Let the app get a new one.',
} as const

export type ProofReason = keyof typeof proofMessages

/** Builds the refusal PROOF_REJECTED. */
export const rejectProof = (reason: ProofReason, metadata?: ServiceError['metadata']): Rejected =>
  reject(new ServiceError('PROOF_REJECTED', proofMessages[reason], { reason, metadata }))
