// The program knows client/ and server/ only.
import type { TcpLink } from '../protocol/link/tcp.ts'

export type Known = TcpLink
