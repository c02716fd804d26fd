/** Address of a server that runs with its defaults. */
const defaultUrl = 'http://127.0.0.1:8080'

/**
 * Makes `SKILL.md`, which coding agents load when a task is about phone verification: the guide for them, with links to a
 * running server.
 */
export const renderSkill = (guide: string): string => `---
name: otpd
description: Integrates otpd, the self-hosted service for one-time passcodes by SMS, call or messenger. Use it when a backend has to verify phone numbers or log users in with codes, and for calls to /v1/otp/send and /v1/otp/verify.
---

${guide.replaceAll(/\]\(([\w-]+\.md[^)]*)\)/g, `](${defaultUrl}/docs/$1)`)}`
