"""A small convolutional network for 8 x 8 images."""

from torch import Tensor, nn


class DigitNet(nn.Module):
    """Two convolutions and two linear layers, 38,282 parameters.

    Maps images of shape (n, 1, 8, 8) to logits of shape (n, 10).
    """

    def __init__(self, dropout: float = 0.25) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(64, 10),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return one logit per class for each image."""
        return self.classifier(self.features(images))
