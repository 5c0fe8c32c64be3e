/** Whether an address or host name as in a URL is this machine's own, for certain. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(host) || /^(::1|\[::1\])$/.test(host)
}
