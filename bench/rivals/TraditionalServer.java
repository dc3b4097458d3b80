// SPDX-License-Identifier: MIT
// TraditionalServer PORT: reads what clients send, 4 KiB at a time, and forgets it.

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

final class TraditionalServer {
	public static void main(String[] args) throws IOException {
		byte[] room = new byte[4096];
		try (ServerSocket server =
				new ServerSocket(Integer.parseInt(args[0]), 16, InetAddress.getLoopbackAddress())) {
			while (true) {
				try (Socket client = server.accept(); InputStream in = client.getInputStream()) {
					while (in.read(room) >= 0) {
						continue;
					}
				}
			}
		}
	}
}
