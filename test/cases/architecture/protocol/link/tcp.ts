import type { Socket } from 'node:net'

export type TcpLink = Socket
