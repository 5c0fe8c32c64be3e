/**
 * How long is waited for what this process does by itself: until it has worked for so long. That ends what would never come, before
 * the limit of the test, which could not say why, and however little of the machine this process gets beside others.
 */
const MICROSECONDS = 45_000_000

/** Returns whether it is over. */
export function ownPatience(): () => boolean {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return user + system > MICROSECONDS
  }
}
