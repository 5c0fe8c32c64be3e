/**
 * Run by vitest around each file. All files of a worker share its process, so a loop of immediates that one leaves behind runs
 * beside all that follow: the process never rests, and what waits until it does waits for ever. Such a file fails.
 */
import { afterAll } from 'vitest'
import { endlessImmediates } from './immediates.ts'

/** Those of files before this one, which have failed for them. */
const before = await endlessImmediates()

afterAll(async () => {
  const left = (await endlessImmediates()).filter((place) => !before.includes(place))
  if (left.length > 0) throw new Error(`this file leaves a loop of immediates running:\n${left.join('\n')}`)
})
