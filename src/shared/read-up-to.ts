/**
 * Reads a body, if there is one, up to a limit, because it may never end.
 *
 * @param tooLarge makes the error that is thrown for a larger one
 */
export async function readUpTo(
  bytesMax: number,
  body: AsyncIterable<Uint8Array> | null,
  tooLarge: () => Error,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    // Throwing out of the loop cancels the stream.
    if (length > bytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
