// SPDX-License-Identifier: MIT
// TraditionalClient HOST PORT FILE: sends FILE by read and write of 4 KiB, and waits for the close.

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;

final class TraditionalClient {
	public static void main(String[] args) throws IOException {
		byte[] room = new byte[4096];
		long start = System.nanoTime();
		try (Socket server = new Socket(args[0], Integer.parseInt(args[1]));
				InputStream in = new FileInputStream(args[2])) {
			OutputStream out = server.getOutputStream();
			for (int count = in.read(room); count > 0; count = in.read(room)) {
				out.write(room, 0, count);
			}
			server.shutdownOutput();
			server.getInputStream().read();
		}
		System.out.printf("%.6f seconds%n", (System.nanoTime() - start) / 1e9);
	}
}
